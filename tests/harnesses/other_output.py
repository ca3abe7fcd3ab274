"""Returns an output that nothing asked for."""

import right


def reply(request):
    message = right.reply(request)
    message["outputs"]["cos"] = message["outputs"]["out"]
    return message


right.main(reply)
