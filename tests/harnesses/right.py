"""A right program: sinusoidal in float32, with the standard library alone. The others here are this one with one defect."""

import base64
import json
import math
import struct
import sys

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


def angle(position, i, params):
    pairs = params["dim"] // 2
    return position / params["base"] ** (i / (pairs - 1 if params["endpoint"] else pairs))


def sinusoidal(request, angle=angle):
    params, positions = request["params"], request["inputs"]["positions"]
    bad = params["dim"] % 2 or params["layout"] not in ("interleaved", "sin_cos", "cos_sin")
    if bad or params["dim"] == 2 * params["endpoint"]:
        raise ValueError(params)
    values = []
    for position in numbers(positions):
        angles = [angle(position, i, params) for i in range(params["dim"] // 2)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
        if params["layout"] == "interleaved":
            values += [v for pair in zip(sines, cosines, strict=True) for v in pair]
        else:
            values += sines + cosines if params["layout"] == "sin_cos" else cosines + sines
    return values, [*positions["shape"], params["dim"]]


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
