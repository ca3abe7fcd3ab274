"""Replies to another request."""

import right

right.main(lambda request: right.reply(request) | {"seq": request["seq"] + 1})
