"""Permutation of query and key weights: cases and known mistakes."""

from collections.abc import Iterator
from typing import Any

from .tools import Case, Deviation, Wrap, after, before, floats, form_case, gradient, reals, seed_of
from .tools.hints import SLICE

USUAL = {"heads": 2, "source": "half", "target": "interleaved"}
SIZES = {"D": 6, "R": (5,)}
OTHER_VALUES = {"target": "half"}
KERNEL: tuple[dict[str, Any], ...] = (
    {"heads": 33, "source": "half", "target": "interleaved"},
    {"heads": 33, "source": "interleaved", "target": "half"},
)
KERNEL_SIZES: dict[str, Any] = {"D": 128, "R": (257,)}


def _case(
    name: str, shape: tuple[int, ...], comment: str = "", *, kind: str = "value", tier: str = "core",
    source: str = "interleaved", target: str = "half", **params: Any,
) -> Case:  # fmt: skip
    inputs = {"weight": floats(*shape, seed=seed_of(name), bits=24 if len(shape) == 2 and tier == "core" else 8)}
    params = {"source": source, "target": target, **params}
    return Case(f"permute_qk_weights/{name}", params, inputs, comment, kind, tier)


def _weight_forms() -> tuple[Case, ...]:
    """Return the forms of weights."""

    def case(name: str, weight: tuple[int, ...], heads: int, form: str = "", **params: Any) -> Case:
        options = {"heads": heads, "source": "interleaved", "target": "half", **params}
        return form_case("permute_qk_weights", name, {"weight": reals("weights" + name, *weight)}, options, form=form)

    return (
        case("expanded", (24, -3, 2), 2, form="broadcast-view"),
        case("batch-one", (12, 1), 1),
        case("length-one", (16, 1), 2),
    )


def _again() -> Iterator[Case]:
    """Yield second calls with the mixed layout, and with a view."""
    for name, source, target in (
        ("mixed", "interleaved_to_half", "half"),
        ("mixed-back", "interleaved", "interleaved_to_half"),
    ):
        options, weight = {"heads": 3, "source": source, "target": target}, reals(name, 24, 2)
        yield Case(f"permute_qk_weights/again/{name}", options, {"weight": weight})
    options, weight = {"heads": 2, "source": "half", "target": "interleaved"}, reals("permuted", 12, -2, 3)
    yield Case("permute_qk_weights/again/expanded", options, {"weight": weight}, form="broadcast-view")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (16, 3), heads=2, tier="smoke"),
        _case("plain/three-heads", (36, 5), heads=3),
        _case("plain/mixed", (12, 5), "as from interleaved", heads=1, source="interleaved_to_half"),
        _case("plain/to-mixed", (14, 5), heads=1, source="half", target="interleaved_to_half"),
        _case("plain/same-reading", (12, 7), "nothing moves: both read pairs (2i, 2i + 1)", heads=2,
              target="interleaved_to_half"),
        _case("plain/true-size", (512, 2), heads=4, source="half", target="interleaved"),
        _case("partial/back", (44, 3), heads=2, rotary_dim=10, source="half", target="interleaved"),
        _case("partial/odd-head", (39, 2), "heads of 13 lanes", heads=3, rotary_dim=8),
        _case("bias/plain", (24,), heads=2),
        _case("bias/partial", (30,), heads=3, rotary_dim=6, source="half", target="interleaved"),
        _case("refused/heads", (10, 3), "ten rows do not hold four heads", heads=4, kind="reject"),
        _case("refused/rotary-dim", (16, 3), "more lanes than a head has", heads=2, rotary_dim=10, kind="reject"),
        _case("refused/odd", (16, 3), "an odd number of lanes", heads=2, rotary_dim=5, kind="reject"),
        _case("refused/layout", (16, 3), "an unknown layout", heads=2, target="neox", kind="reject"),
        *_weight_forms(),
        gradient("permute_qk_weights", "half", {"weight": reals("permute-half", 12, 3)}, {"out": (12, 3)}, heads=2,
                 source="interleaved", target="half"),
        gradient("permute_qk_weights", "partial", {"weight": reals("permute-partial", 22)}, {"out": (22,)},
                 heads=2, rotary_dim=8, source="half", target="interleaved"),
        *_again(),
    )  # fmt: skip


SOURCE_TARGET = "Compare source and target: if both read the same pairs, nothing moves; otherwise rows and bias do."


def _turned(weight: Any, /, *, source: str, target: str, **rest: Any) -> tuple[tuple[Any], dict[str, Any]]:
    return (weight,), {"source": target, "target": source, **rest}


def _one_head(weight: Any, /, *, heads: int, **rest: Any) -> tuple[tuple[Any], dict[str, Any]]:
    return (weight,), {"heads": 1, **rest} if weight.shape[0] % 2 == 0 else {"heads": heads, **rest}


def _whole_head(weight: Any, /, *, heads: int, rotary_dim: Any = None, **rest: Any) -> tuple[tuple[Any], dict[str, Any]]:
    width = weight.shape[0] // heads
    return (weight,), {"heads": heads, "rotary_dim": width - width % 2, **rest}


def _always(weight: Any, /, *, source: str, target: str, **rest: Any) -> tuple[tuple[Any], dict[str, Any]]:
    if (source == "half") == (target == "half"):
        target = "interleaved" if source == "half" else "half"
    return (weight,), {"source": source, "target": target, **rest}


def _of_weights(wrap: Wrap) -> dict[str, Wrap]:
    return {"permute_qk_weights": wrap}


DEVIATIONS = (
    Deviation("permute-turned", "the permutation is inverted", _of_weights(before(_turned)),
              hint="For more than two pairs, half to interleaved and interleaved to half are different permutations."),
    Deviation("permute-one-head", "channels are permuted over the whole width, not head by head",
              _of_weights(before(_one_head)), hint="With fewer key heads than query heads, permute keys by key heads."),
    Deviation("permute-whole-head", "channels past rotary_dim are permuted too", _of_weights(before(_whole_head)), hint=SLICE),
    Deviation("permute-nothing", "nothing is permuted", _of_weights(after(lambda out, weight, **options: weight)),
              hint=SOURCE_TARGET),
    Deviation("permute-always", "rows are permuted though both layouts read the same pairs", _of_weights(before(_always)),
              hint=SOURCE_TARGET),
    Deviation("permute-no-bias", "a bias is not permuted",
              _of_weights(after(lambda out, weight, **options: weight if weight.ndim == 1 else out)), hint=SOURCE_TARGET),
)  # fmt: skip
