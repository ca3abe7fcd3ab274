"""Second cases of single operations, which do not follow from the axes that the registry states."""

from collections.abc import Iterator

import numpy as np

from ...model import Case, Flag
from ..tools.numbers import floats, reals
from .facts import usual
from .sample import call, shifted
from .second_cases import one, several

FLAGS: dict[str, Flag] = {}


def _cases() -> Iterator[Case]:
    """Yield a case for each thing that the operation is otherwise asked once."""
    for name, dims in (("one-axis", [10]), ("one-axis-four", [4])):
        yield Case(f"axial_frequencies/again/{name}", {"dims": dims, "base": 300.0, "allocation": "own"}, {}, ("again",))
    for name, source, target in (
        ("mixed", "interleaved_to_half", "half"),
        ("mixed-back", "interleaved", "interleaved_to_half"),
    ):
        options = {"heads": 3, "source": source, "target": target}
        yield Case(f"permute_qk_weights/again/{name}", options, {"weight": reals(name, 24, 2)}, ("again",))
    weight, options = {"weight": reals("permuted", 12, -2, 3)}, {"heads": 2, "source": "half", "target": "interleaved"}
    yield Case("permute_qk_weights/again/expanded", options, weight, ("second-view", "broadcast-view"))
    for name, flags, shape in (
        ("strided", "second-view non-contiguous", (3, 2, 4, 4)), ("expanded", "second-view broadcast-view", (-3, 2, 2)),
        ("no-batch", "again length-zero", (0, 3, 3)), ("no-head", "again length-zero", (3, 0, 2, 2)),
    ):  # fmt: skip
        yield Case(f"cayley/again/{name}", {}, {"skew": reals(f"cayley {name}", *shape) / 8}, tuple(flags.split()))
    rotating = usual("rotary_linear_attention") or {}
    yield one("rotary_linear_attention", "mixed-layout", params={**rotating, "layout": "interleaved_to_half"})
    yield one("fope", "rows", rows=True, R=(2,))
    yield one("fope", "expanded-mixes", "second-view broadcast-view", alike=True, R=(2,), G=2, g=1)
    yield one("mla_logits", "no-content", "again length-zero", N=0)
    yield one("mrope", "vector-once-more", way=0, places=shifted(2))
    for op in ("logn_scale", "attention_temperature"):
        yield one(op, "negative", params={**(usual(op) or {}), "offset": 0}, places=lambda n: np.arange(n) * 5 - 12)
    yield several("t5_buckets", "rows", "grown", "one row, then two", {"T": 6}, {"T": 6, "R": (2,)})
    options, arrays = call("attention_logits", "again/gradient")
    cotangents = {"out": floats(2, 4, 5, seed=7) / 2}
    yield Case("attention_logits/again/gradient", options, arrays, ("again",), kind="vjp", cotangents=cotangents)


CASES = tuple(_cases())
