"""Never replies, and ends of no signal that it can ignore."""

import signal
import time

import right


def reply(request):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1000)


right.main(reply)
