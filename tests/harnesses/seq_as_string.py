"""Returns the number of the request as a string."""

import right

right.main(lambda request: right.reply(request) | {"seq": str(request["seq"])})
