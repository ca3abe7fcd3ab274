"""
Read the golden vectors without posref, with the standard library alone, and check a plain RoPE against them.

    python examples/read_vectors.py [DIR]

DIR is a folder of vectors, by default the one in this checkout. conformance/vectors/README.md explains the files: follow it to
write the same in another language. To check your own function, replace `rope` with it.
"""

import hashlib
import itertools
import json
import math
import struct
import sys
from pathlib import Path

SUITE = Path(__file__).resolve().parents[1] / "conformance" / "vectors"
CODES = {"F64": "d", "F32": "f", "I64": "q", "BOOL": "?"}  # struct's letters, all little-endian
UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
FLOOR = {"bfloat16": 2.0**-134, "float16": 2.0**-25}
CLASS = {"float64": "float64", "float32": "angle64", "bfloat16": "float64", "float16": "float64"}  # what `rope` claims
KNOWN = {"layout", "base", "rotary_dim", "inverse"}


def tensors(path, recorded):
    """Return the tensors of a safetensors file by name: for each its shape and its values in C order. Check the hash first."""
    data = path.read_bytes()
    assert hashlib.sha256(data).hexdigest() == recorded["sha256"], f"{path} is altered"
    (size,) = struct.unpack_from("<Q", data)
    header, found = json.loads(data[8 : 8 + size]), {}
    for name, entry in header.items():
        count, start = math.prod(entry["shape"]), 8 + size + entry["data_offsets"][0]
        found[name] = entry["shape"], struct.unpack_from(f"<{count}{CODES[entry['dtype']]}", data, start)
    return found


def rope(x, positions, *, layout, base, rotary_dim=None, inverse=False):
    """Return RoPE of `x`, in binary64. An array is a shape and flat values; positions broadcast to rows from the right."""
    (*rows, width), values = x
    out, d = list(values), rotary_dim or width
    adjacent, apart = [(2 * i, 2 * i + 1) for i in range(d // 2)], [(i, i + d // 2) for i in range(d // 2)]
    read = apart if layout == "half" else adjacent
    write = adjacent if layout == "interleaved" else apart
    if inverse:
        read, write = write, read
    for row, index in enumerate(itertools.product(*map(range, rows))):
        place = 0
        for size, i in zip(positions[0], index[len(index) - len(positions[0]) :], strict=True):
            place = place * size + (0 if size == 1 else i)
        for i, (a, b), (c, e) in zip(range(d // 2), read, write, strict=True):
            angle = positions[1][place] * base ** (-2 * i / d)
            cos, sin = math.cos(angle), math.sin(-angle if inverse else angle)
            first, second = values[row * width + a], values[row * width + b]
            out[row * width + c], out[row * width + e] = first * cos - second * sin, second * cos + first * sin
    return out


def stored(value, dtype):
    """Return a binary64 number rounded once to `dtype`, to the nearest, ties to even."""
    if dtype == "bfloat16" and math.isfinite(value):
        fraction, exponent = math.frexp(value)
        return math.ldexp(round(fraction * 256), exponent - 8)
    code = {"float64": "<d", "float32": "<f", "float16": "<e", "bfloat16": "<f"}[dtype]
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def tolerance(t, expected, dtype):
    """Return how far a result stored in `dtype` may be from `expected`; t is the half-width of the class in the file."""
    if dtype not in UNIT:
        return t
    if t == 0:  # exact: no error if dtype represents it, else one rounding
        return 0 if stored(expected, dtype) == expected else UNIT[dtype] * abs(expected) + FLOOR[dtype]
    return t + UNIT[dtype] * (abs(expected) + t) + FLOOR[dtype]


def judge(root, function=rope):
    """Return the number of cases asked, and (case, dtype, error, allowed) of every value."""
    asked, judged = 0, []
    for entry in json.loads((root / "SUITE.json").read_text())["groups"]:
        if entry["op"] != "rope":
            continue
        folder, files = root / entry["id"], ("data.safetensors", "tolerance.safetensors")
        data, widths = (tensors(folder / name, entry["files"][name]) for name in files)
        for case in json.loads((folder / "group.json").read_text())["cases"]:
            calls = case.get("steps", [case])
            if case["kind"] in ("reject", "vjp") or not all(set(call["params"]) <= KNOWN for call in calls):
                continue
            asked += 1
            for call in calls:
                results = function(*(data[call["inputs"][n]] for n in ("x", "positions")), **call["params"])
                case_name, _, output = call["expected"]["out"].split("/")
                for dtype in case["dtypes"]:
                    half = widths[f"{CLASS[dtype]}/{case_name}/{output}"][1]
                    for y, want, t in zip(results, data[call["expected"]["out"]][1], half, strict=True):
                        error = abs(stored(y, dtype) - want)
                        judged.append((case["id"], dtype, error, tolerance(t, want, dtype)))
    return asked, judged


if __name__ == "__main__":
    asked, judged = judge(Path(sys.argv[1]) if len(sys.argv) > 1 else SUITE)
    for dtype, accuracy in CLASS.items():
        mine = [(error, allowed) for _, d, error, allowed in judged if d == dtype]
        worst = max((error / allowed for error, allowed in mine if allowed), default=0.0)
        print(f"rope in {dtype}, class {accuracy}: {len(mine)} values, the worst at {worst:.2f} of its tolerance")
    outside = [v for v in judged if not v[2] <= v[3]]  # not "error > allowed", which NaN would pass
    print(f"{asked} cases; {len(outside)} values outside{': ' + str(outside[0]) if outside else ''}")
    sys.exit(1 if outside or not judged else 0)
