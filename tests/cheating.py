"""
Targets for the command line: WRONG ones that try to pass, and RIGHT ones that are odd.

    python tests/cheating.py [NAME ...]

checks them, or those named, and prints the exit code of each. A target is the text of a file, and what is asked of it.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]
PRELUDE = """
import inspect, os, sys
import numpy as np
import posref
from posref.conformance import Unsupported
"""
# The suite's calls and answers, which are installed where a target runs
STORED = """
from posref.conformance.suite import INSTALLED, load_groups

CALLS = [call for group in load_groups(INSTALLED, ops=[OP]) for case in group.cases if case.kind != "reject"
         for call in case.calls if not call.cotangents]
PARAMETERS = inspect.signature(getattr(posref, OP)).parameters

def single(x):
    return x.astype(np.float32) if x.dtype.kind == "f" else x

def answer(call):
    found = [single(x) for x in call.expected.values()]
    return found[0] if len(found) == 1 else tuple(found)

def told(arrays, options):
    given = {n: p.default for n, p in PARAMETERS.items()} | dict(zip(PARAMETERS, arrays)) | options
    return {n: x for n, x in given.items() if n not in ("dtype", "xp", "device")}

def options_of(given):
    return sorted((n, repr(x)) for n, x in given.items() if not isinstance(x, np.ndarray))

def arrays_of(given):
    return [np.asarray(x) for x in given.values() if isinstance(x, np.ndarray)]

def table(key, otherwise):
    def asked(*arrays, **options):
        given = told(arrays, options)
        for call in CALLS:
            known = told((), {**call.inputs, **call.params})
            if options_of(known) == options_of(given) and key(arrays_of(known)) == key(arrays_of(given)):
                return answer(call)
        return otherwise(*arrays, **options)
    return asked

def refuse(*arrays, **options):
    raise Unsupported("not here")

def first(*arrays, **options):
    return answer(CALLS[0])
"""


@dataclass(frozen=True)
class Target:
    """One file, and how it is asked: `ask` in place of its name, and options after it."""

    op: str
    text: str
    options: tuple[str, ...] = ()
    stored: bool = False
    file: str = "target.py"
    ask: str = ""
    exact: str = ""  # the whole file, if it is not what the others begin with

    def source(self) -> str:
        stored = f"OP = {self.op!r}\n{STORED}" if self.stored else ""
        return self.exact or f"{PRELUDE}{stored}{dedent(self.text)}"


def _stored(op: str, key: str, otherwise: str, *options: str) -> Target:
    return Target(op, f"{op} = table({key}, {otherwise})", options, stored=True)


# By the id of a case it is known which calls no file has
IDS = """
from posref.conformance.targets.python import PythonTarget
asked, reply = [""], PythonTarget.reply
PythonTarget.reply = lambda self, case, *rest: (asked.append(case.id), reply(self, case, *rest))[1]

def known(otherwise):
    def call(*arrays, **options):
        return otherwise() if "/asked/" in asked[-1] else getattr(posref, OP)(*arrays, **options)
    return call

"""
HASH = "lambda arrays: [(x.shape, x.astype(np.float32).tobytes()) for x in arrays]"
SIZE = "lambda arrays: [x.shape for x in arrays]"
FIRST = "lambda arrays: [(x.shape, *x.astype(np.float32).ravel()[:1]) for x in arrays]"
FARTHEST = "lambda arrays: [float(np.abs(x).max(initial=0)) for x in arrays]"

CACHE = """
kept = {{}}
def {op}(p, {other}, **options):
    given = {key}, p.shape, str({known}), str(options)
    return kept.setdefault(given, posref.{op}(p, {other}, **options)).copy()
"""


def _cache(op: str, other: str, key: str, known: str = "") -> Target:
    return Target(op, CACHE.format(op=op, other=other, key=key, known=known or other))


CACHES = {
    f"a cache by {name} of positions, in {op}": _cache(op, other, key)
    for op, other in (("sinusoidal", "dim"), ("alibi", "k"), ("learned", "table"))
    for name, key in (
        ("the sum", "p.sum()"), ("the ends", "str((p.flat[:1], p.flat[-1:]))"),
        ("the extremes", "(p.max(initial=0), p.min(initial=0))"), ("the shape", "0"),
    )
} | {
    "a cache by two positions at each end": _cache("alibi", "k", "str((p.flat[:2], p.flat[-2:]))"),
    "a cache by positions in half precision": _cache("sinusoidal", "dim", "p.astype(np.float16).tobytes()"),
    "a cache by positions in a byte": _cache("sinusoidal", "dim", "(p % 256).tobytes()"),
    "a cache by weighted sums of positions": _cache("alibi", "k", "str(p.ravel() @ np.arange(p.size)[:, None] ** [0, 1, 2])"),
    "a cache by the sum and the parity of positions": _cache("alibi", "k", "str((p.sum(), (p % 2).tobytes()))"),
    "a cache by the sum of a table": _cache("learned", "table", "p.tobytes()", known="table.sum()"),
}  # fmt: skip
WRONG: dict[str, Target] = {
    **CACHES,
    "a table by hash, else another answer": _stored("rope_table", HASH, "first"),
    "a table by hash, else a refusal": _stored("learned", HASH, "refuse"),
    "a table by hash, else a refusal, without arrays": _stored("rope_frequencies", HASH, "refuse"),
    "a table by hash, else a refusal, of biases": _stored("alibi", HASH, "refuse"),
    "a table by size": _stored("sinusoidal", SIZE, "first"),
    "a table by size, else a refusal": _stored("t5_buckets", SIZE, "refuse"),
    "a table by the first number": _stored("sinusoidal", FIRST, "first"),
    "a table by the farthest position": _stored("t5_buckets", FARTHEST, "refuse"),
    "a table by hash in the smoke tier": _stored("sinusoidal", HASH, "first", "--tier", "smoke"),
    "a table of two cases": Target("sinusoidal", f"CALLS = CALLS[:2]\nsinusoidal = table({HASH}, refuse)", stored=True),
    "a table of what one option has": Target(
        "rope_frequencies",
        f"CALLS = [c for c in CALLS if not c.params.get('scaling')]\nrope_frequencies = table({HASH}, refuse)",
        stored=True,
    ),
    "a table by the number of the call": Target("alibi_slopes", """
        asked = -1
        def alibi_slopes(*arrays, **options):
            global asked
            asked += 1
            return answer(CALLS[min(asked // 2, len(CALLS) - 1)])
        """, stored=True),
    "right as often as the suite asks": Target("alibi_slopes", """
        asked = 0
        def alibi_slopes(heads, **options):
            global asked
            asked += 1
            return posref.alibi_slopes(heads, **options) * (asked <= 4 * len(CALLS) // 3)
        """, stored=True),
    "the buffer of the last reply": Target("learned", """
        before = []
        def learned(positions, table, **options):
            before.append(posref.learned(positions, table, **options))
            return before[-2] if len(before) > 1 and before[-2].shape == before[-1].shape else before[-1]
        """),
    "one buffer for all replies": Target("sinusoidal", """
        buffer = np.zeros(1 << 20, np.float32)
        def sinusoidal(positions, dim, **options):
            found = posref.sinusoidal(positions, dim, **options)
            buffer[: found.size] = found.ravel()
            return buffer[: found.size].reshape(found.shape)
        """),
    "its own arguments are replaced": Target("learned", """
        def learned(positions, table, **options):
            found = posref.learned(positions, table, **options)
            table[...] = 0
            return found
        """),
    "its own argument is the result": Target("apply_rope", """
        def apply_rope(x, cos, sin, **options):
            x[...] = posref.apply_rope(x, cos, sin, **options)
            return x
        """),
    "a table of two cases, without arrays": Target("alibi_slopes", """
        def alibi_slopes(heads, *, max_bias=8, **options):
            if (heads, max_bias) not in ((8, 8), (8, 16)):
                raise Unsupported("not here")
            return posref.alibi_slopes(heads, max_bias=max_bias)
        """),
    "one number of heads, and another answer elsewhere": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            return posref.alibi_slopes(8, **options)
        """),
    "position 0 alone": Target("rope", """
        def rope(x, positions, **options):
            if np.any(np.asarray(positions)):
                raise Unsupported("far")
            return x
        """),
    "everything is refused": Target("alibi", "def alibi(*arrays, **options):\n    raise NotImplementedError"),
    "zeros": Target("alibi", "def alibi(*arrays, **options):\n    return 0 * posref.alibi(*arrays, **options)"),
    "numbers that are none": Target(
        "alibi", "def alibi(*arrays, **options):\n    return np.nan * posref.alibi(*arrays, **options)"
    ),
    "the judge of its process is replaced": Target("alibi_slopes", """
        from posref.conformance import judge
        from posref.conformance.targets import invocation
        judge.judge = judge.compare = lambda *_, **__: None
        invocation.same_bits = lambda *_: True
        def alibi_slopes(heads, **options):
            return 2 * posref.alibi_slopes(heads, **options)
        """),
    "zip gives nothing": Target("alibi_slopes", """
        import builtins
        def alibi_slopes(heads, **options):
            builtins.zip = lambda *_, **__: iter(())
            return np.zeros(heads)
        """),
    "what is expected is looked for in frames": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            frame = sys._getframe()
            while frame is not None:
                for value in list(frame.f_locals.values()):
                    for call in (value, *(getattr(value, "calls", None) or ())):
                        if "out" in getattr(call, "expected", ()):
                            return np.array(call.expected["out"])
                frame = frame.f_back
            return np.zeros(heads, np.float32)
        """),
    "an array that equals all": Target("alibi_slopes", """
        class Equal(np.ndarray):
            def __eq__(self, other):
                return np.ones(self.shape, bool)
            def __sub__(self, other):
                return np.zeros(self.shape)
            def __array_ufunc__(self, ufunc, method, *inputs, **options):
                return np.zeros(self.shape, np.float32)
        def alibi_slopes(heads, **options):
            return (2 * posref.alibi_slopes(heads, **options)).view(Equal)
        """),
    "other bits the second time": Target("alibi_slopes", """
        asked = 0
        def alibi_slopes(heads, **options):
            global asked
            asked += 1
            return posref.alibi_slopes(heads, **options) * np.float32(1 + (asked % 2) * 2**-23)
        """),
    "another dtype": Target(
        "sinusoidal",
        "def sinusoidal(p, dim, *, dtype=None, **o):\n    return posref.sinusoidal(np.asarray(p, np.float64), dim, **o)",
    ),
    "a class that nothing has": Target(
        "alibi_slopes", "claims = {'float32': 'any'}\ndef alibi_slopes(heads, **o):\n    return np.zeros(heads, np.float32)"
    ),
    "sines that may be anything": Target(
        "sinusoidal",
        "claims = {'trig': 2.0}\ndef sinusoidal(p, dim, **o):\n    return 0 * posref.sinusoidal(p, dim, **o)",
    ),
    "a stated scope in which it answers nothing": Target("alibi", """
        supports = {"alibi": {"form": ["key"]}}
        def alibi(q, k, *, form, **options):
            if form == "key":
                raise Unsupported("key")
            return posref.alibi(q, k, form=form, **options)
        """),
    "wrong inside the scope that it states": Target("alibi", """
        supports = {"alibi": {"form": ["distance"]}}
        def alibi(q, k, *, form, heads, **options):
            if form != "distance":
                raise Unsupported(form)
            return posref.alibi(q, k, form=form, heads=heads, **options) * (heads != 12)
        """),
    "what it writes is hidden, in torch": Target("learned", """
        import torch
        from posref.conformance.targets import invocation
        backend = "torch"
        invocation.ValueCall.changed = lambda self: ()
        def learned(positions, table, **options):
            found = posref.learned(positions, table, **options)
            table.detach().zero_()
            return found
        """),
    "it states that it overwrites what is not the result": Target("rope", """
        in_place = ("x",)
        def rope(x, positions, **options):
            found = posref.rope(x, positions, **options)
            x[...] = 0
            return found
        """),
    "fresh calls are known by their ids, and refused": Target(
        "axial_frequencies", f"{IDS}axial_frequencies = known(lambda: refuse())", stored=True
    ),
    "fresh calls are known by their ids, and wrong": Target(
        "axial_frequencies", f"{IDS}axial_frequencies = known(first)", stored=True
    ),
    "right for the suite's scalings alone": Target("rope_frequencies", """
        KNOWN = {repr(call.params.get("scaling")) for call in CALLS}
        def rope_frequencies(dim, *, scaling=None, **options):
            return posref.rope_frequencies(dim, scaling=scaling if repr(scaling) in KNOWN else None, **options)
        """, stored=True),
    "an error where the suite does not ask": Target("sinusoidal", """
        KNOWN = {call.inputs["positions"].tobytes() for call in CALLS}
        def sinusoidal(positions, dim, **options):
            if np.asarray(positions).tobytes() not in KNOWN:
                raise RuntimeError
            return posref.sinusoidal(positions, dim, **options)
        """, stored=True),
    "the memory that it is lent is cut off": Target("learned", """
        def learned(positions, table, **options):
            for name in os.listdir("/proc/self/fd"):
                try:
                    os.ftruncate(int(name), 0)
                except OSError:
                    pass
            return posref.learned(positions, table, **options)
        """),
    "no operation": Target("alibi", "", ("--op", "alibi")),
    "one operation of two": Target("alibi", "alibi = posref.alibi", ("--op", "alibi", "--op", "rope")),
    "it ends its process when it is imported": Target("alibi", "print('CONFORMANT')\nsys.stdout.flush()\nos._exit(0)"),
    "it ends its process in a call": Target("alibi", "def alibi(*arrays, **options):\n    os._exit(0)"),
    "it ends the check": Target(
        "alibi", "import signal\ndef alibi(*arrays, **options):\n    os.kill(os.getppid(), signal.SIGTERM)"
    ),
    "it replies for itself": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            for descriptor in range(64):
                for seq in range(100):
                    try:
                        os.write(descriptor, b'{"status": "unsupported", "message": "", "seq": %d}\\n' % seq)
                    except OSError:
                        break
            return np.zeros(heads, np.float32)
        """),
}  # fmt: skip

RIGHT: dict[str, Target] = {
    "inputs are kept, and compared with later ones": Target("sinusoidal", """
        before = []
        def sinusoidal(positions, dim, **options):
            asked = np.shape(positions), np.asarray(positions).dtype, dim, repr(options)
            for known, given, table in before:
                if given == asked and np.array_equal(known, positions):
                    return table.copy()
            before.append((positions, asked, posref.sinusoidal(positions, dim, **options)))
            return before[-1][2].copy()
        """),
    "its input is the result": Target("learned", """
        def learned(positions, table, **options):
            same = positions.shape == table.shape[:1] and np.array_equal(positions, np.arange(len(table)))
            return table if same and not options else posref.learned(positions, table, **options)
        """),
    "what it writes it restores": Target("learned", """
        def learned(positions, table, **options):
            if table.flags.writeable:
                before = table.copy()
                table[...] = 0
                table[...] = before
            return posref.learned(positions, table, **options)
        """),
    "a thread reads inputs later": Target("learned", """
        import threading
        def learned(positions, table, **options):
            threading.Thread(target=lambda: [table.sum() for _ in range(50)]).start()
            return posref.learned(positions, table, **options)
        """),
    "tensors are pickled": Target("learned", """
        import pickle
        backend = "torch"
        def learned(positions, table, **options):
            positions, table = pickle.loads(pickle.dumps((positions, table)))
            return posref.learned(positions, table, **options)
        """),
    "it prints": Target("alibi_slopes", """
        print("loaded", flush=True)
        def alibi_slopes(heads, **options):
            print("NOT CONFORMANT", file=sys.stdout if heads % 2 else sys.stderr, flush=True)
            os.write(1, b'{"seq": 1}\\n')
            return posref.alibi_slopes(heads, **options)
        """),
    "it replaces and closes its streams": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            sys.stdin, sys.stdout = None, open(os.devnull, "w")
            return posref.alibi_slopes(heads, **options)
        """),
    "a thread that never ends": Target("alibi_slopes", """
        import threading
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        alibi_slopes = posref.alibi_slopes
        """),
    "a process for every call": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            if os.fork() == 0:
                os._exit(1)
            os.wait()
            return posref.alibi_slopes(heads, **options)
        """),
    "a file for every call": Target("alibi_slopes", """
        import tempfile
        def alibi_slopes(heads, **options):
            with tempfile.TemporaryFile() as file:
                np.save(file, posref.alibi_slopes(heads, **options))
                file.seek(0)
                return np.load(file)
        """),
    "it goes to another folder": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            os.chdir("/")
            return posref.alibi_slopes(heads, **options)
        """),
    "NumPy raises where it would warn": Target(
        "sinusoidal", "np.seterr(all='raise', under='ignore')\nfrom posref import sinusoidal"
    ),
    "warnings are errors": Target(
        "sinusoidal", "import warnings\nwarnings.simplefilter('error')\nfrom posref import sinusoidal"
    ),
    "signals are ignored": Target("alibi_slopes", """
        import signal
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        alibi_slopes = posref.alibi_slopes
        """),
    "a destructor that raises": Target("alibi_slopes", """
        class Thing:
            def __del__(self):
                raise RuntimeError("too late")
        def alibi_slopes(heads, **options):
            Thing()
            return posref.alibi_slopes(heads, **options)
        """),
    "results that cannot be written": Target("sinusoidal", """
        def sinusoidal(*arrays, **options):
            found = posref.sinusoidal(*arrays, **options)
            found.flags.writeable = False
            return found
        """),
    "results in column order": Target(
        "sinusoidal",
        "def sinusoidal(*arrays, **options):\n    return np.asfortranarray(posref.sinusoidal(*arrays, **options))",
    ),
    "results that are views with steps": Target("learned", """
        def learned(positions, table, **options):
            found = posref.learned(positions, table, **options)
            return np.repeat(found, 2, axis=-1)[..., ::2]
        """),
    "results whose rows lie backwards": Target("learned", """
        def learned(positions, table, **options):
            found = posref.learned(positions, table, **options)
            return np.ascontiguousarray(found[..., ::-1])[..., ::-1]
        """),
    "numbers in float64": Target("sinusoidal", """
        def sinusoidal(positions, dim, *, dtype=None, **options):
            found = posref.sinusoidal(np.asarray(positions, np.float64), dim, dtype=np.float64, **options)
            return found.astype(dtype)
        """),
    "an object of a class": Target("alibi_slopes", """
        class Kernels:
            dtypes = ("float32",)
            def alibi_slopes(self, heads, **options):
                return posref.alibi_slopes(heads, **options)
        kernels = Kernels()
        """, ask="target:kernels"),
    "a partial function": Target("learned", "import functools\nlearned = functools.partial(posref.learned)"),
    "a callable object": Target("learned", """
        class Learned:
            def __call__(self, *arrays, **options):
                return posref.learned(*arrays, **options)
        learned = Learned()
        """),
    "a cache": Target("alibi_slopes", """
        import functools
        @functools.lru_cache
        def cached(heads, **options):
            return posref.alibi_slopes(heads, **options)
        def alibi_slopes(heads, *, dtype=np.float32, **options):
            return cached(heads, **options).astype(np.float32)
        """),
    "names are looked up": Target("alibi_slopes", """
        def __getattr__(name):
            if name == "alibi_slopes":
                return posref.alibi_slopes
            raise AttributeError(name)
        """, ("--op", "alibi_slopes")),
    "tensors of torch": Target("alibi_slopes", """
        import torch
        backend = "torch"
        def alibi_slopes(heads, **options):
            return torch.asarray(posref.alibi_slopes(heads, **options), dtype=torch.float32)
        """),
    "one number of heads, of which experiments ask more": Target("alibi_slopes", """
        def alibi_slopes(heads, **options):
            if heads != 1:
                raise Unsupported("one head")
            return posref.alibi_slopes(heads, **options)
        """),
    "an even number of positions alone": Target("sinusoidal", """
        def sinusoidal(positions, dim, **options):
            if np.asarray(positions).size % 2:
                raise Unsupported("odd")
            return posref.sinusoidal(positions, dim, **options)
        """),
    "one number of heads, which it states": Target("alibi_slopes", """
        supports = {"alibi_slopes": {"heads": [1]}}
        def alibi_slopes(heads, **options):
            if heads != 1:
                raise Unsupported("one head")
            return posref.alibi_slopes(heads, **options)
        """),
    "positions from 0 alone": Target("sinusoidal", """
        def sinusoidal(positions, dim, **options):
            p = np.asarray(positions)
            if p.ndim != 1 or not np.array_equal(p, np.arange(p.size)):
                raise Unsupported("positions")
            return posref.sinusoidal(positions, dim, **options)
        """),
    "one base": Target("rope_frequencies", """
        def rope_frequencies(dim, *, base, scaling=None, **options):
            if base != 10_000.0 or scaling is not None:
                raise NotImplementedError("base")
            return posref.rope_frequencies(dim, base=base)
        """),
    "one layout": Target("apply_rope", """
        def apply_rope(x, cos, sin, *, layout):
            if layout != "half":
                raise NotImplementedError(layout)
            return posref.apply_rope(x, cos, sin, layout=layout)
        """),
    "an exception for what it lacks that has no text": Target("alibi", """
        def alibi(q, k, *, form, **options):
            if form == "key":
                raise NotImplementedError
            return posref.alibi(q, k, form=form, **options)
        """),
    "a name with spaces and accents": Target(
        "alibi_slopes", "from posref import alibi_slopes", file="ma cible \N{LATIN SMALL LETTER E WITH ACUTE} [1].py"
    ),
    "a byte order mark and carriage returns": Target(
        "alibi_slopes", "", exact="\N{ZERO WIDTH NO-BREAK SPACE}# text\r\nfrom posref import alibi_slopes\r\n"
    ),
}  # fmt: skip


def run(target: Target, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check a target in a folder of its own by the command line."""
    (folder / target.file).write_text(target.source(), encoding="utf-8", newline="")
    command = [sys.executable, "-m", "posref", "check", target.ask or target.file, *target.options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment, timeout=100)


if __name__ == "__main__":
    for name, target in {**WRONG, **RIGHT}.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                done = run(target, Path(folder))
            last = re.sub(r"\s+", " ", (done.stdout + done.stderr)[-200:])
            print(f"{'wrong' if name in WRONG else 'right'}  {done.returncode}  {name}: {last if sys.argv[1:] else ''}")
