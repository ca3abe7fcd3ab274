"""
Where the tests of this folder run: on a GPU that PyTorch and CuPy know, or on a CPU, with a stand-in for CuPy.

`pytest tests/gpu` asks for a GPU, and fails without one. `POSREF_SMALL=1 pytest tests/gpu` runs the same code on any machine.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

SMALL = os.environ.get("POSREF_SMALL") == "1"
if SMALL:
    import standin

    cp: Any = standin.install()
    DEVICE = "cpu"
else:
    if not torch.cuda.is_available():
        msg = (
            "no GPU that PyTorch knows: `POSREF_SMALL=1 pytest tests/gpu` runs these tests on a CPU, with NumPy in CuPy's place"
        )
        raise RuntimeError(msg)
    import cupy as cp

    DEVICE = "cuda"


@contextmanager
def without_waiting() -> Iterator[None]:
    """Raise where the host waits for the GPU. Of the stand-in: where it reads a value, or sends one to the device."""
    if SMALL:
        before = dict(standin.HOST)
        yield
        assert before == standin.HOST, "the host read a value, or sent one to the device"
        return
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def captured(call: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], Callable[[], None]]:
    """Return the results of a call captured in a CUDA graph, and what replays it into the same results."""
    if SMALL:
        results = call()

        def repeat() -> None:
            for result, new in zip(results, call(), strict=True):
                result.copy_(new)

        return results, repeat
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()  # kernels load, and the allocator gets its blocks
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()

    def replay() -> None:
        graph.replay()
        torch.cuda.synchronize()

    return results, replay


def on_another_stream(call: Callable[[], Any]) -> Any:
    """Return what a call computes on a stream of its own, late, on which the current stream waits."""
    if SMALL:
        return call()
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)  # clock cycles, some ten milliseconds: a reader that does not wait reads too early
        result = call()
    here.wait_stream(side)
    result.record_stream(here)
    return result


def on_another_stream_of_cupy(call: Callable[[], Any]) -> Any:
    """Return what a call computes in CuPy on a stream of its own, on which the current stream waits."""
    side, here = cp.cuda.Stream(non_blocking=True), cp.cuda.get_current_stream()
    side.wait_event(here.record())
    with side:
        result = call()
    here.wait_event(side.record())
    return result
