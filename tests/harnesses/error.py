"""Says that it failed."""

import right

right.main(lambda request: {"seq": request["seq"], "status": "error", "message": "out of \x1b[31mregisters\n"})
