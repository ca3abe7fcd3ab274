"""Prints lines for ever, and never a reply."""

import sys

import right


def reply(request):
    while True:
        sys.stdout.write("still loading\n" * 1000)


right.main(reply)
