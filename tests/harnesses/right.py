"""A right program: sinusoidal in float32, with the standard library alone. The others here are this one with one defect."""

import base64
import json
import math
import struct
import sys
from itertools import zip_longest

STATED = {
    "protocol": 1,
    "implementation": {"name": "right", "version": "1.0", "language": "Python"},
    "operations": ["sinusoidal"],
    "claims": {"float32": "angle64"},
}
CODES = {"F32": "f", "F64": "d", "I64": "q"}


def numbers(tensor):
    data = base64.b64decode(tensor["data"])
    size = struct.calcsize(CODES[tensor["dtype"]])
    return struct.unpack(f"<{len(data) // size}{CODES[tensor['dtype']]}", data)


def tensor(values, shape, dtype="F32"):
    data = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
    return {"dtype": dtype, "shape": shape, "data": base64.b64encode(data).decode()}


def counts(params):
    """Return how many sines and how many cosines there are; of an odd width, what is too much is cut, or zeros are added."""
    more = (params["dim"] + 1) // 2
    return {"zeros": (more - params["dim"] % 2,) * 2, "extra_sine": (more, params["dim"] // 2)}.get(params["odd"], (more, more))


def angle(position, i, params):
    sines, cosines = counts(params)
    return position / params["base"] ** (i / (sines - 1 if params["endpoint"] else (sines + cosines) / 2))


def sinusoidal(request, angle=angle):
    params, positions = request["params"], request["inputs"]["positions"]
    dim, odd = params["dim"], params["odd"]
    bad = params["layout"] not in ("interleaved", "sin_cos", "cos_sin") or params["scale"] <= 0
    bad = bad or odd not in ("refused", "zeros", "truncated", "extra_sine") or (dim % 2 and odd == "refused")
    if bad or (params["endpoint"] and dim < 4):
        raise ValueError(params)
    sine_count, cosine_count = counts(params)
    values = []
    for position in numbers(positions):
        angles = [angle(position, i, params) for i in range(sine_count)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles[:cosine_count]]
        if params["layout"] == "interleaved":
            row = [v for pair in zip_longest(sines, cosines) for v in pair if v is not None]
        else:
            row = sines + cosines if params["layout"] == "sin_cos" else cosines + sines
        values += [params["scale"] * v for v in [*row, 0.0][:dim]]
    return values, [*positions["shape"], dim]


def reply(request):
    try:
        values, shape = sinusoidal(request)
    except ValueError as error:
        return {"seq": request["seq"], "status": "rejected", "message": str(error)}
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": tensor(values, shape)}}


def say(message):
    print(json.dumps(message), flush=True)


def main(reply=reply, stated=STATED):
    """Answer requests; `reply` may also do what no program should."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["cmd"] == "stop":
            return
        if request["cmd"] == "start":
            say(stated)
        elif request["op"] not in stated["operations"] or request["dtype"] != "float32":
            say({"seq": request["seq"], "status": "unsupported"})
        else:
            say(reply(request))


if __name__ == "__main__":
    main()
