"""Closes its standard output when it is asked, and lives on."""

import os
import time

import right


def reply(request):
    os.close(1)
    time.sleep(100)


right.main(reply)
