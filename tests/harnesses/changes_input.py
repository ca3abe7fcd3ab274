"""Admits that it altered its input."""

import right

right.main(lambda request: right.reply(request) | {"changed": ["positions"]})
