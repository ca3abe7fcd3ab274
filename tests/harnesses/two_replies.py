"""Replies twice to every request."""

import right


def reply(request):
    right.say(right.reply(request))
    return right.reply(request)


right.main(reply)
