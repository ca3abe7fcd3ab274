"""Writes a line that does not end."""

import sys

import right


def reply(request):
    while True:
        sys.stdout.write("{" + "x" * 65536)


right.main(reply)
