"""Right for a program with angles in binary32, but it claims angles in binary64."""

import struct

import right


def angle(position, i, params):
    return struct.unpack("f", struct.pack("f", right.angle(position, i, params)))[0]


def reply(request):
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": right.tensor(*right.sinusoidal(request, angle))}}


right.main(reply)
