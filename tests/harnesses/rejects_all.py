"""Takes every call for invalid."""

import right

right.main(lambda request: {"seq": request["seq"], "status": "rejected", "message": "no"})
