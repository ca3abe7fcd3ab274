"""Right except for one value."""

import right


def reply(request):
    values, shape = right.sinusoidal(request)
    values[-1] += 1e-5
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": right.tensor(values, shape)}}


right.main(reply)
