"""Returns float64 where float32 was asked."""

import right


def reply(request):
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": right.tensor(*right.sinusoidal(request), "F64")}}


right.main(reply)
