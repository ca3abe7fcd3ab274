"""Writes NaN, which is not JSON."""

import right

right.main(lambda request: right.reply(request) | {"message": float("nan")})
