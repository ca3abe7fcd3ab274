"""Ends, leaving a daemon that holds its pipes."""

import os
import time

import right


def reply(request):
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(1000)


right.main(reply)
