"""Right, but slow."""

import time

import right


def reply(request):
    time.sleep(0.3)
    return right.reply(request)


right.main(reply)
