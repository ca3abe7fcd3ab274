"""A Python target that does, in some layouts, what no function should: it needs a process of its own."""

import ctypes
import os
import subprocess
import sys
import time

import numpy as np

print("printed on import")


def sinusoidal(positions, dim, /, *, layout, base=None, endpoint=False, dtype=None):
    """Depend on the environment for how to go wrong; otherwise be right."""
    how = os.environ.get("UNRULY")
    if how == "hang":
        time.sleep(1000)
    elif how == "exit":
        os._exit(0)
    elif how == "sys.exit":
        sys.exit(0)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "allocate":
        return np.ones(2**28) + np.ones(2**28)
    elif how == "print":
        print('{"seq": 1}')
        os.write(1, b'{"seq": 1, "status": "ok"}\n')
        subprocess.run(["echo", "{"], check=True)
        sys.stdin.read()
    elif how == "list":
        return [1.0, 2.0]
    elif how == "complex":
        return np.zeros((3, 8), dtype=np.complex64)
    elif how == "interrupt":
        raise KeyboardInterrupt
    if base is None:
        base = 1000.0 if how == "default" else 10000.0
    pairs = dim // 2
    exponent = np.arange(pairs) / (pairs - 1 if endpoint else pairs)
    angles = positions[..., None] / base**exponent
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(*positions.shape, dim).astype(dtype)
