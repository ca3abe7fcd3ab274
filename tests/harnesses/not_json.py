"""Replies over several lines."""

import json

import right


def reply(request):
    print(json.dumps(right.reply(request), indent=1), flush=True)
    return {}


right.main(reply)
