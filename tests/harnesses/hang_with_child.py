"""Never replies, nor does its child, which holds its pipes."""

import os
import time

import right


def reply(request):
    os.fork()
    time.sleep(1000)


right.main(reply)
