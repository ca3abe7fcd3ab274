"""Deviations of permute_qk_weights."""

from typing import Any

from .compose import Deviation, Wrap, after, before


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
              "For more than two pairs, half to interleaved and interleaved to half are different permutations."),
    Deviation("permute-one-head", "channels are permuted over the whole width, not head by head", _of_weights(before(_one_head)),
              "With fewer key heads than query heads, permute keys by key heads."),
    Deviation("permute-whole-head", "channels past rotary_dim are permuted too", _of_weights(before(_whole_head))),
    Deviation("permute-nothing", "nothing is permuted", _of_weights(after(lambda out, weight, **options: weight))),
    Deviation("permute-always", "rows are permuted though both layouts read the same pairs", _of_weights(before(_always))),
    Deviation("permute-no-bias", "a bias is not permuted",
              _of_weights(after(lambda out, weight, **options: weight if weight.ndim == 1 else out))),
)  # fmt: skip
