"""
The right program (right.py) with a defect: `python wrong.py NAME`.

Its reply to a request, and what it states where that is another, stand under the name.
"""

import base64
import json
import os
import random
import shutil
import signal
import struct
import sys
import time
from pathlib import Path

import right

BY_FILE = right.STATED | {"tensors": "file"}


def ok(request, outputs):
    return {"seq": request["seq"], "status": "ok", "outputs": outputs}


def changed(request, change, dtype="F32"):
    """Return a reply whose values and shape are changed."""
    return ok(request, {"out": right.tensor(*change(*right.sinusoidal(request)), dtype)})


def with_output(request, change):
    """Return the right reply after a change of its outputs."""
    message = right.reply(request)
    change(message.get("outputs", {}))
    return message


def by_file(request):
    """Tensors in safetensors files instead of base64."""
    data = Path(request["files"]["inputs"]).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    for name, tensor in request["inputs"].items():
        begin, end = header[f"in/{name}"]["data_offsets"]
        tensor["data"] = base64.b64encode(data[8 + size :][begin:end]).decode()
    message = right.reply(request)
    for name, tensor in message.get("outputs", {}).items():
        body = base64.b64decode(tensor.pop("data"))
        header = json.dumps({name: tensor | {"data_offsets": [0, len(body)]}}).encode()
        Path(request["files"]["outputs"]).write_bytes(len(header).to_bytes(8, "little") + header + body)
    return message


def binary32(position, i, params):
    return struct.unpack("f", struct.pack("f", right.angle(position, i, params)))[0]


def closes_output(request):
    os.close(1)
    time.sleep(100)


def endless(text):
    """Return a reply that writes a text for ever."""

    def reply(request):
        while True:
            sys.stdout.write(text)

    return reply


def exit_with_daemon(request):
    """The daemon holds the program's pipes."""
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(1000)


def flood_on_stderr(request):
    sys.stderr.write("warning: this is deprecated\n" * 200_000)
    return right.reply(request)


def half_line(request):
    """And the program ends as if all were well."""
    sys.stdout.write(json.dumps(right.reply(request))[:40])
    sys.stdout.flush()
    os._exit(0)


def hang(request):
    time.sleep(1000)


def hang_with_child(request):
    """The child holds the program's pipes."""
    os.fork()
    time.sleep(1000)


def hang_with_daemon(request):
    """A grandchild in a session of its own, whose parent has ended."""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
    time.sleep(1000)


def huge_allocation(request):
    hoard = bytearray(400 * 2**20)
    return right.reply(request) | {"message": str(len(hoard))}


def ignores_sigterm(request):
    """And every other signal that can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1000)


def kills_supervisor(request):
    """By a daemon that it started."""
    supervisor = os.getppid()
    if not os.fork():
        os.setsid()
        os.kill(supervisor, signal.SIGKILL)
    time.sleep(1000)


def noise_on_stdout(request):
    """As libraries print."""
    print('Loading weights...\n\n[INFO] done \x1b[31m(took 0.1 s)\x1b[0m {"seq": 1}')
    return right.reply(request)


def not_json(request):
    """The reply stands on several lines."""
    print(json.dumps(right.reply(request), indent=1), flush=True)
    return {}


def shape_as_float(outputs):
    """Counts as 3.0, as Lua writes them."""
    for tensor in outputs.values():
        tensor["shape"] = [float(n) for n in tensor["shape"]]


def slow(request):
    time.sleep(0.3)
    return right.reply(request)


def two_replies(request):
    right.say(right.reply(request))
    return right.reply(request)


def wrong_file(request):
    """The file for results is a link to somewhere else."""
    os.symlink(request["files"]["inputs"], request["files"]["outputs"])
    return ok(request, {"out": {"dtype": "F32", "shape": [3, 8]}})


def wrong_folder(request):
    """The file for results is a folder, and at other calls the folder that should hold it is gone."""
    place = Path(request["files"]["outputs"])
    if request["seq"] % 2:
        place.mkdir()
    else:
        shutil.rmtree(place.parent)
    return ok(request, {"out": {"dtype": "F32", "shape": [3, 8]}})


REPLIES = {
    "by_file": by_file,
    "changes_input": lambda r: right.reply(r) | {"changed": ["positions"]},
    "claims_too_much": lambda r: ok(r, {"out": right.tensor(*right.sinusoidal(r, binary32))}),
    "closes_output": closes_output,
    "crash": lambda r: os.kill(os.getpid(), signal.SIGSEGV),
    "endless_line": endless("{" + "x" * 65536),
    "endless_noise": endless("still loading\n" * 1000),
    "error": lambda r: {"seq": r["seq"], "status": "error", "message": "out of \x1b[31mregisters\n"},
    "exit_3": lambda r: os._exit(3),
    "exit_with_daemon": exit_with_daemon,
    "extra_key": lambda r: right.reply(r) | {"change": []},
    "flood_on_stderr": flood_on_stderr,
    "forgets": lambda r: changed(r, lambda values, shape: ([values[0] + 1e-9 * random.random(), *values[1:]], shape)),
    "half_line": half_line,
    "hang": hang,
    "hang_with_child": hang_with_child,
    "hang_with_daemon": hang_with_daemon,
    "huge_allocation": huge_allocation,
    "ignores_sigterm": ignores_sigterm,
    "kills_supervisor": kills_supervisor,
    "nan_in_json": lambda r: right.reply(r) | {"message": float("nan")},
    "no_output": lambda r: ok(r, {}) | {"message": "it is in my other coat"},
    "noise_on_stdout": noise_on_stdout,
    "not_base64": lambda r: with_output(r, lambda outputs: outputs["out"].update(data="!" + outputs["out"]["data"][1:])),
    "not_finite": lambda r: changed(r, lambda values, shape: ([float("inf"), *values[1:]], shape)),
    "not_json": not_json,
    "one_element": lambda r: changed(r, lambda values, shape: ([*values[:-1], values[-1] + 1e-5], shape)),
    "other_output": lambda r: with_output(r, lambda outputs: outputs.update(cos=outputs["out"])),
    "rejects_all": lambda r: {"seq": r["seq"], "status": "rejected", "message": "no"},
    "seq_as_float": lambda r: right.reply(r) | {"seq": float(r["seq"])},  # which JSON Schema takes for an integer
    "seq_as_string": lambda r: right.reply(r) | {"seq": str(r["seq"])},
    "shape_as_float": lambda r: with_output(r, shape_as_float),
    "slow": slow,
    "two_replies": two_replies,
    "unknown_status": lambda r: right.reply(r) | {"status": "okay"},
    "unsupported": lambda r: {"seq": r["seq"], "status": "unsupported", "message": "not yet"},
    "wrong_dtype": lambda r: changed(r, lambda values, shape: (values, shape), "F64"),
    "wrong_file": wrong_file,
    "wrong_folder": wrong_folder,
    "wrong_length": lambda r: changed(r, lambda values, shape: (values[:-1], shape)),
    "wrong_seq": lambda r: right.reply(r) | {"seq": r["seq"] + 1},
    "wrong_shape": lambda r: changed(r, lambda values, shape: (values, shape[::-1])),
}
STATED = {
    **dict.fromkeys(("by_file", "wrong_file", "wrong_folder"), BY_FILE),
    "cannot_run": {"protocol": 1, "error": "no \x1b[31mGPU\x1b[0m found"},
    "only_unknown": right.STATED | {"operations": ["rotary_magic"]},
    "other_protocol": {"protocol": 2, "name": "of the future"},
    "unknown_operation": right.STATED | {"operations": ["sinusoidal", "rotary_magic"]},
}


def changes_its_mind(been):
    """Crash, and state other dtypes when started again."""
    dtypes = ["float32", "float16"] if been.exists() else ["float32"]
    been.touch()
    right.main(REPLIES["exit_3"], right.STATED | {"dtypes": dtypes})


def main(name, *arguments):
    """Run the program of a name; the last ones begin or end in another way than the right one."""
    if name == "changes_its_mind":
        changes_its_mind(Path(*arguments))
    elif name == "deaf":
        right.say(right.STATED)  # without reading the request to start
        time.sleep(1000)
    else:
        right.main(REPLIES.get(name, right.reply), STATED.get(name, right.STATED))
        time.sleep(1000 * (name == "ignores_stop"))


if __name__ == "__main__":
    main(*sys.argv[1:])
