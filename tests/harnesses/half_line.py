"""Writes half of its reply and ends as if all were well."""

import json
import os
import sys

import right


def reply(request):
    sys.stdout.write(json.dumps(right.reply(request))[:40])
    sys.stdout.flush()
    os._exit(0)


right.main(reply)
