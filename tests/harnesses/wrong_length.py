"""Returns fewer bytes than its shape has."""

import right


def reply(request):
    values, shape = right.sinusoidal(request)
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": right.tensor(values[:-1], shape)}}


right.main(reply)
