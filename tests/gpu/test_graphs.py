"""Calls with tables never wait for a GPU, and run in a CUDA graph: they read no value and send no constant."""

from typing import Any

import pytest
import torch
from conftest import Library, opened
from machine import DEVICE, SMALL, captured, without_waiting
from sample import sample

from posref.conformance.calls import bind, given_dtype, parameters_of
from posref.conformance.model import LoadedCase
from posref.spec import REGISTRY

# The operations that a model runs at every step with tables, masks and learned numbers that are on the device.
WITH_TABLES = (
    "apply_rope", "rope_table", "mixed_rope", "mixed_table", "cumulative_angles", "camera_transform", "affine_waves",
    "axial_learned", "fourier", "random_fourier", "permute_qk_weights", "forgetting_bias", "decomposed_rows", "chunked_window",
    "sliding_window", "lambda_window", "rerope_distances", "dual_chunk_distances",
)  # fmt: skip


def arguments(library: Library, case: LoadedCase) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """Return the arguments of a case on the device, positional and by keyword, and the array among them that is rotated."""
    (call,) = case.calls
    arrays = {
        name: library.array(x, given_dtype(case.op, name, "float32") if x.dtype.kind == "f" else None)
        for name, x in call.inputs.items()
    }
    positional, keywords = bind(case.op, arrays, call.params)
    if "dtype" in parameters_of(REGISTRY[case.op].function):
        keywords["dtype"] = library.dtype("float32")
    return positional, keywords, [x for name, x in arrays.items() if call.inputs[name].dtype.kind == "f"]


def results(op: str, positional: Any, keywords: Any) -> tuple[Any, ...]:
    found = REGISTRY[op].function(*positional, **keywords)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("op", WITH_TABLES)
def test_the_host_does_not_wait(op: str) -> None:
    with opened("cupy") if SMALL else opened("torch", torch.device(DEVICE, 0)) as library:
        for case in sample(op):
            positional, keywords, _ = arguments(library, case)
            results(op, positional, keywords)  # the first call loads kernels
            with without_waiting():
                results(op, positional, keywords)


@pytest.mark.parametrize("op", WITH_TABLES)
def test_a_graph_replays_the_call_on_new_numbers(op: str) -> None:
    with opened("torch", torch.device(DEVICE, 0) if not SMALL else None) as library:
        for case in sample(op):
            positional, keywords, reals = arguments(library, case)
            found, replay = captured(lambda p=positional, k=keywords: results(op, p, k))
            before = [result.clone() for result in found]
            for x in reals:
                x.mul_(0.5)
            replay()
            for result, new in zip(found, results(op, positional, keywords), strict=True):
                assert torch.equal(result, new), case.id
            if reals and before[0].is_floating_point() and before[0].numel() > 1 and op != "permute_qk_weights":
                assert not torch.equal(found[0], before[0]) or not before[0].any(), case.id
