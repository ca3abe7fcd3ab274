"""Invents a status."""

import right

right.main(lambda request: right.reply(request) | {"status": "okay"})
