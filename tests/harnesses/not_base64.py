"""Returns what is not base64."""

import right


def reply(request):
    message = right.reply(request)
    message["outputs"]["out"]["data"] = "!" + message["outputs"]["out"]["data"][1:]
    return message


right.main(reply)
