"""
Bad input is refused in one sentence: function, argument, requirement, value, reason. The whole sentence is tested.

`snapshots/errors.txt` has calls, each with its error below it. ``python tests/test_errors.py`` writes the errors anew.
"""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sampling import few

import posref
import posref.backends
from posref import scaling
from posref.spec import REGISTRY, OneOf

SNAPSHOT = Path(__file__).parent / "snapshots" / "errors.txt"
T = np.arange(5)
ROPE: dict[str, Any] = {"layout": "half", "base": 10000.0}
NAMES: dict[str, Any] = {  # what the calls may name
    **vars(scaling), "posref": posref, "positions": posref.positions,
    "np": np, "torch": torch, "jnp": jnp, "X": np.ones((2, 3, 5, 64)), "T": T, "ROPE": ROPE,
    "TABLE": np.ones((8, 3)), "AXES": np.stack([T, T, T]), "SHAW": {"left": 1, "right": 1, "order": "key_minus_query"},
    "GRID": {"method": "linear", "align_corners": False, "antialias": False},
    "LONG": scaling.LongRoPE((1.0, 1.5, 2.0, 3.0), (2.0, 3.0, 4.0, 8.0), 32, max_length=64),
    "AXIAL": {"dims": (16, 24, 24), "allocation": "own", "arrangement": "chunked", "layout": "half", "base": 100.0},
    "MROPE": {"sections": (8, 12, 12), "arrangement": "chunked"} | ROPE,
    "CUT": posref.rope_table(T, np.ones(32)), "FROM_0": posref.rope_table(np.arange(9), np.ones(32)),
    "frequencies": lambda extension=None, dim=8, **options: posref.rope_frequencies(
        dim, **{"base": 10000.0, "scaling": extension} | options
    ),
}  # fmt: skip


def calls() -> list[tuple[str, str]]:
    """Return the calls of the snapshot, each with its error."""
    blocks = SNAPSHOT.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    return [(call, error) for call, _, error in (block.partition("\n") for block in blocks)]


def outcome(call: str) -> str:
    """Return the error of a call: its class and its sentence."""
    try:
        eval(call, NAMES)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing is refused"


@few(97, ("call", "error"), calls(), ids=[call for call, _ in calls()])
def test_error(call: str, error: str) -> None:
    assert outcome(call) == error


def test_what_a_call_lacks_is_named() -> None:
    """All arguments without a default, if none is given, and each number that alone is left out."""
    for encoding in REGISTRY.values():
        function = encoding.function
        needed = [a for a in inspect.signature(function).parameters.values() if a.default is a.empty]
        places, options = ([a.name for a in needed if (a.kind is a.POSITIONAL_ONLY) is placed] for placed in (True, False))
        numbers = [name for name in options if not isinstance(encoding.domains.get(name), OneOf)]
        for given, left_out in [((), options), *(([object()] * len(places), [name]) for name in numbers)]:
            ways = {"position": [] if given else places, "name": left_out}
            said = ", ".join(f"{' and '.join(names)} by {way}" for way, names in ways.items() if names)
            with pytest.raises(TypeError) as caught:
                function(*given, **{name: object() for name in options if name not in left_out})
            assert str(caught.value) == f"{function.__name__}: a call must have {said}."


@pytest.mark.parametrize("record", scaling.RECORDS, ids=lambda record: record.__name__)
def test_what_a_record_lacks_is_named(record: type) -> None:
    needed = [field.name for field in dataclasses.fields(record) if field.default is dataclasses.MISSING]
    for given in range(len(needed)):
        with pytest.raises(TypeError) as caught:
            record(*[2.0] * given)
        assert str(caught.value) == f"{record.__name__}: a call must have {' and '.join(needed[given:])} by name."


def test_no_call_is_there_twice_and_each_is_refused() -> None:
    seen = [call.partition("  #")[0] for call, _ in calls()]
    assert len(seen) == len(set(seen))
    assert all(error.startswith(("ValueError: ", "TypeError: ")) for _, error in calls())


@pytest.mark.parametrize("xp", [np, torch, jnp], ids=["numpy", "torch", "jax"])
def test_shapes_read_alike_in_every_library(xp: Any) -> None:
    with pytest.raises(ValueError, match="positions") as caught:
        posref.rope(xp.ones((2, 3, 5, 4)), xp.ones((2, 5)), **ROPE)
    assert str(caught.value) == (
        "rope: positions with more than one axis must have all 3 of the leading axes of x, (2, 3, 5); got (2, 5). "
        "Insert axes of size 1, for instance reshape to (2, 1, 5)."
    )
    with pytest.raises(ValueError, match="cos"):
        posref.apply_rope(xp.ones((5, 4)), xp.ones((4, 2)), xp.ones((4, 2)), layout="half")


def test_a_record_keeps_its_signature() -> None:
    assert list(inspect.signature(scaling.Llama3).parameters) == [field.name for field in dataclasses.fields(scaling.Llama3)]


def test_fields_of_a_scaling_are_numbers_of_python() -> None:
    record = scaling.YaRN(np.float32(4), np.int64(4096), truncate=np.bool_(False))
    assert record == scaling.YaRN(4.0, 4096, truncate=False)
    assert [type(value) for value in (record.factor, record.original_length, record.truncate)] == [float, int, bool]


@pytest.mark.parametrize("option", ["layout", "base"])
def test_options_on_which_libraries_disagree_have_no_default(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        posref.rope(np.ones((5, 64)), T, **{name: value for name, value in ROPE.items() if name != option})


def test_tokens_before_heads_take_a_column_of_positions() -> None:
    """(B, T, H, D) takes (T, 1); with one head that could as well be one position for each row, and is refused."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 4))
    p = np.asarray([4, 7, 9])
    whole = posref.rope(x, np.broadcast_to(p[:, None], (2, 3, 1)), layout="half", base=100.0)
    assert np.array_equal(posref.rope(x, p[:, None], layout="half", base=100.0), whole)
    with pytest.raises(ValueError, match="Insert axes of size 1"):
        posref.rope(x[:, :, :1], p[:, None], layout="half", base=100.0)


if __name__ == "__main__":
    SNAPSHOT.write_text("\n\n".join(f"{call}\n{outcome(call)}" for call, _ in calls()) + "\n", encoding="utf-8")
