"""Returns the number of the request as 1.0, which JSON Schema takes for an integer."""

import right

right.main(lambda request: right.reply(request) | {"seq": float(request["seq"])})
