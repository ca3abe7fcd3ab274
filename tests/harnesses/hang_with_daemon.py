"""Never replies, having started a daemon: a grandchild in a session of its own, whose parent has ended."""

import os
import time

import right


def reply(request):
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
    time.sleep(1000)


right.main(reply)
