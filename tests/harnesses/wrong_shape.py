"""Returns the right values in another shape."""

import right


def reply(request):
    values, shape = right.sinusoidal(request)
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": right.tensor(values, shape[::-1])}}


right.main(reply)
