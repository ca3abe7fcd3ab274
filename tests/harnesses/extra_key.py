"""Misspells an optional key."""

import right

right.main(lambda request: right.reply(request) | {"change": []})
