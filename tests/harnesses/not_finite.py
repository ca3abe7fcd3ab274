"""Returns infinity, which float32 has and the operation has not."""

import right


def reply(request):
    values, shape = right.sinusoidal(request)
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": right.tensor([float("inf"), *values[1:]], shape)}}


right.main(reply)
