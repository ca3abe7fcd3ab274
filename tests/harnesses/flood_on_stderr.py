"""Right, after a few megabytes of warnings."""

import sys

import right


def reply(request):
    sys.stderr.write("warning: this is deprecated\n" * 200_000)
    return right.reply(request)


right.main(reply)
