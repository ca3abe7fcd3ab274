"""Asks for files, and makes a link to somewhere else of the one for results."""

import os

import right


def reply(request):
    os.symlink(request["files"]["inputs"], request["files"]["outputs"])
    return {"seq": request["seq"], "status": "ok", "outputs": {"out": {"dtype": "F32", "shape": [3, 8]}}}


right.main(reply, right.STATED | {"tensors": "file"})
