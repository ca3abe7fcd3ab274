"""Has the operation, and supports nothing of it."""

import right

right.main(lambda request: {"seq": request["seq"], "status": "unsupported", "message": "not yet"})
