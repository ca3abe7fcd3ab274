"""First calls at once from eight threads, and calls in a copy of the process: the same bits as one after another."""

import os
import subprocess
import sys

import pytest

CALLS = """
import hashlib, os, sys, threading
import numpy as np
import posref
from posref.scaling import YaRN

THREADS = 8

def x(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)

def far(first, count=40):
    return np.arange(first, first + count)

def decoded(of):
    steps = [(7 * of + 131 * token) % 9000 for token in range(20)]
    return [posref.rope(x(2, 1, 64), np.asarray([p]), layout="half", base=10000.0 + of) for p in steps]

yarn = {"base": 10000.0, "scaling": YaRN(factor=4.0, original_length=2048)}
CALLS = {
    "rope": lambda: posref.rope(x(2, 40, 64), far(100), layout="half", base=10000.0),
    "rope in blocks": lambda: posref.rope(x(8, 4096, 64), far(77, 4096), layout="interleaved", base=10000.0),
    "rope_table": lambda: posref.rope_table(far(3, 5000), posref.rope_frequencies(64, **yarn)[0], dtype=np.float32),
    "rope_frequencies": lambda: posref.rope_frequencies(64, **yarn),
    "alibi": lambda: posref.alibi(far(0, 300), far(0, 300), heads=12, form="causal"),
    "t5_bias": lambda: posref.t5_bias(far(0, 300), far(0, 300), x(32, 8), bidirectional=True),
    "sinusoidal": lambda: posref.sinusoidal(far(9, 600), 128, layout="sin_cos"),
    "attention": lambda: posref.attention(x(2, 30, 16), x(2, 30, 16), x(2, 30, 16)),
    **{f"tokens of {of}": (lambda of=of: decoded(of)) for of in range(THREADS)},
}

def digest(found):
    found = found if isinstance(found, (tuple, list)) else (found,)
    return hashlib.sha256(b"".join(np.asarray(f).tobytes() for f in found)).hexdigest()

def all_of_them(start=0):
    names = [*CALLS][start:] + [*CALLS][:start]
    found = {name: digest(CALLS[name]()) for name in names}
    return [found[name] for name in CALLS]

def at_once():
    barrier, results = threading.Barrier(THREADS), [None] * THREADS
    def use(number):
        barrier.wait()
        results[number] = all_of_them(number * 2 % len(CALLS))
    threads = [threading.Thread(target=use, args=(number,)) for number in range(THREADS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return results
"""
ALONE = "print(*all_of_them())"
THREADS = "[print(*(found or ['none'])) for found in at_once()]"
IN_A_COPY = """
import warnings
warnings.simplefilter("ignore")  # of a fork beside threads, which is what is tried
[call() for name, call in CALLS.items() if name != "tokens of 7"]  # Python's own locks of imports do not survive a fork
stop = threading.Event()
def busy():
    while not stop.is_set():
        all_of_them()
threads = [threading.Thread(target=busy) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(6):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print(*all_of_them(), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
[thread.join() for thread in threads]
"""


def lines(code: str) -> list[str]:
    """Return what a process of its own prints, with one thread in each call of a library."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS + code], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def expected() -> str:
    """What one thread computes."""
    (found,) = lines(ALONE)
    assert len(set(found.split())) == len(found.split()) == 16
    return found


def test_eight_threads_may_make_the_first_calls(expected: str) -> None:
    assert lines(THREADS) == [expected] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_copy_of_a_process_whose_threads_are_at_work_computes_the_same(expected: str) -> None:
    assert lines(IN_A_COPY) == [expected] * 6
