"""Kills the process that supervises it, having started a daemon."""

import os
import signal
import time

import right


def reply(request):
    supervisor = os.getppid()
    if not os.fork():
        os.setsid()
        os.kill(supervisor, signal.SIGKILL)
    time.sleep(1000)


right.main(reply)
