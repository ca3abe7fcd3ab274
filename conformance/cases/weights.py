"""Cases of permute_qk_weights."""

from typing import Any

from ..model import Case, Flag
from .numbers import floats
from .rope import seed_of

FLAGS = {
    "permute-direction": Flag("the permutation run the other way, which for more than two pairs is another one"),
    "permute-heads": Flag("channels permuted over the whole width, or with the query heads for fewer key heads"),
    "permute-partial": Flag("channels past rotary_dim permuted too"),
    "permute-bias": Flag("the bias not permuted with its weight"),
    "refuse-weight": Flag("a weight that does not hold whole heads accepted"),
}


def _weight(
    name: str, flags: str, shape: tuple[int, ...], comment: str = "", *, kind: str = "value", tier: str = "core",
    source: str = "interleaved", target: str = "half", **params: Any,
) -> Case:  # fmt: skip
    inputs = {"weight": floats(*shape, seed=seed_of(name), bits=24 if len(shape) == 2 and tier == "core" else 8)}
    params = {"source": source, "target": target, **params}
    return Case(f"permute_qk_weights/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


CASES = (
    _weight("plain/small", "permute-direction", (16, 3), heads=2, tier="smoke"),
    _weight("plain/back", "permute-direction", (20, 3), heads=2, source="half", target="interleaved"),
    _weight("plain/three-heads", "permute-heads", (36, 5), heads=3),
    _weight("plain/key-heads", "permute-heads", (24, 5), "two key heads of a model with more", heads=2, source="half",
            target="interleaved"),
    _weight("plain/mixed", "permute-direction", (12, 5), "as from interleaved", heads=1, source="interleaved_to_half"),
    _weight("plain/to-mixed", "permute-direction", (14, 5), heads=1, source="half", target="interleaved_to_half"),
    _weight("plain/same", "permute-direction", (12, 5), "nothing moves", heads=2, source="half", target="half"),
    _weight("plain/same-reading", "permute-direction", (12, 7), "nothing moves: both read pairs (2i, 2i + 1)", heads=2,
            target="interleaved_to_half"),
    _weight("plain/one-pair", "permute-heads", (6, 5), "nothing moves", heads=3),
    _weight("plain/true-size", "permute-heads", (512, 2), heads=4, source="half", target="interleaved"),
    _weight("partial/leading", "permute-partial", (40, 3), heads=2, rotary_dim=6),
    _weight("partial/back", "permute-partial", (44, 3), heads=2, rotary_dim=10, source="half", target="interleaved"),
    _weight("partial/odd-head", "permute-partial", (39, 2), "heads of 13 lanes", heads=3, rotary_dim=8),
    _weight("bias/plain", "permute-bias", (24,), heads=2),
    _weight("bias/partial", "permute-bias permute-partial", (30,), heads=3, rotary_dim=6, source="half",
            target="interleaved"),
    _weight("bias/experts", "permute-bias", (12, 3, 2), "further axes stay as they are", heads=2),
    _weight("bias/no-inputs", "permute-bias", (12, 0), heads=2),
    _weight("refused/heads", "refuse-weight", (10, 3), "ten rows do not hold four heads", heads=4, kind="reject"),
    _weight("refused/rotary-dim", "refuse-weight", (16, 3), "more lanes than a head has", heads=2, rotary_dim=10,
            kind="reject"),
    _weight("refused/odd", "refuse-weight", (16, 3), "an odd number of lanes", heads=2, rotary_dim=5, kind="reject"),
    _weight("refused/layout", "refuse-weight", (16, 3), "an unknown layout", heads=2, target="neox", kind="reject"),
)  # fmt: skip
