"""FIRE: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, argument, around, cases_of, deviations_of, floats, gradient, held, pairs
from .tools.hints import ARANGE, BOTH_SIDES, EACH_HEAD, FROM_ZERO, INTEGERS, KEEP_FLOAT32

OP = "fire"
OTHER_VALUES = {"eps": 0.5}
KERNEL: tuple[dict[str, Any], ...] = ({},)

HOLES = (0, 3, 3, 1, 9, 4, 20)
FAR = (0, 1, 255, 257, 2047, 2049, 65537, 131071)

_cases = cases_of(OP)


def _learned(heads: int, hidden: int, seed: int, c: float, threshold: float, bits: int = 8) -> dict[str, Any]:
    """Return the weights of a network, and the numbers of its input."""
    made = (
        floats(*shape, seed=seed + k, bits=bits) / 4
        for k, shape in enumerate(((hidden,), (hidden,), (heads, hidden), (heads,)))
    )
    network = dict(zip(("w1", "b1", "w2", "b2"), made, strict=True))
    return {**network, "c": np.asarray([c]), "threshold": np.asarray([threshold])}


def _case(
    name: str, q: Any, k: Any, heads: int = 3, hidden: int = 4, comment: str = "", *, c: float = 0.125,
    threshold: float = 4.0, bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of fire."""
    learned = _learned(heads, hidden, len(name), c, threshold, bits) | rest.pop("given", {})
    options = {"eps": rest.pop("eps")} if "eps" in rest else {}
    name = name if "/" in name else f"share/{name}"
    return _cases(name, options, {"q_positions": q, "k_positions": k, **learned}, comment, **rest)


def _gradient(name: str, q: Any, k: Any, heads: int, hidden: int, out: tuple[int, ...], **numbers: float) -> Case:
    learned = _learned(heads, hidden, 40 + heads, numbers.get("c", 0.5), numbers.get("threshold", 4.0))
    return gradient(OP, name, {"q_positions": q, "k_positions": k, **learned}, {"out": out})


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", (2, 7), (0, 2, 1, 3, 6), tier="smoke"),
        _case("at-the-threshold", (7, 8, 9), (0, 5, 8), threshold=8.0),
        _case("both-sides", (3, 8, 5), HOLES, 5, 3, "keys before and after the query"),
        _case("dape", (8191, 100), (0, 1, 99, 512, 8000, 8191), 12, 32, "12 heads, 32 hidden units",
              c=0.09375, threshold=512.0),
        _case("512-tokens", (511,), (0, 1, 200, 500, 511), 12, 32, c=0.09375, threshold=512.0),
        _case("far", (0, 2049), FAR, 2, 4),
        _case("24-bits", (60, 95, 4), (1, 2, 20, 44, 95), 4, 7, bits=24),
        _case("large-c", (3, 20), (0, 1, 3, 19), c=3.0),
        _case("small-c", (3, 20), (0, 1, 3, 19), c=2.0**-8, threshold=2.0),
        _case("eps", (2, 9), (0, 1, 2, 8), eps=0.25),
        _case("eps-small", (2, 9), (0, 1, 2, 8), threshold=1.0, eps=0.0625),
        _case("one-unit", (2, 9), (0, 1, 2, 8), 3, 1, "one hidden unit"),
        _case("fractional", (0.5, 7.25), (1.75, 0.25, 3.0), 2, 4),
        _case("refused/layers", (2, 3), (0, 1, 2), 3, 4, "a bias for each hidden unit", kind="reject",
              given={"b1": np.asarray([0.5, 0.25, 1.0])}),
        _case("refused/heads", (2, 3), (0, 1, 2), 3, 4, "a bias for each head", kind="reject",
              given={"b2": np.asarray([0.5, 0.25])}),
        *pairs(OP, {}, **_learned(3, 4, 71, 0.25, 5.0)),
        _gradient("small", (3, 6), (0, 1, 6), 2, 2, (2, 2, 3)),
        _gradient("rows", ((4, 5), (260, 262)), ((0, 5), (262, 250)), 1, 3, (2, 1, 2, 2), threshold=6.0),
        _gradient("before", (1, 3), (0, 2), 2, 3, (2, 2, 2), threshold=8.0),
    )  # fmt: skip


def _share(change: Any) -> Any:
    """Return a wrap that computes the share of numpy arrays in another way."""
    return lambda f: lambda apart, q, c, threshold, /, *, eps: change(apart, q[..., :, None], c, threshold, eps)


def _network(activation: Any) -> Any:
    def wrap(function: Function) -> Function:
        return lambda share, w1, b1, w2, b2, /: activation(share[..., None] * w1 + b1) @ w2.T + b2

    return wrap


@around
def _future_zero(function: Function, q: Any, k: Any, /, *learned: Real, **options: Any) -> Real:
    whole = function(q, k, *learned, **options)
    of_queries = function(q, q, *learned, **options)
    diagonal = np.diagonal(of_queries, axis1=-2, axis2=-1)[..., None]
    return np.where((q[..., :, None] < k[..., None, :])[..., None, :, :], diagonal, whole)


_deviation = deviations_of(OP)
_of_share = deviations_of("fire_share")
_of_network = deviations_of("fire_network")
LENGTH = "Divide by the logarithm of the query's position, or of the threshold if that is larger."
LOGARITHM = "Distance and length are both ln(1 + c x)."
RELU = "The network has one hidden layer with ReLU, and a bias in both layers."

DEVIATIONS = (
    _of_share("fire-threshold-alone", "the share is always of the threshold",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.log(c * t + 1) + e)), hint=LENGTH),
    _of_share("fire-no-threshold", "the share is of the query's position even below the threshold",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.log(c * np.maximum(q, 0) + 1) + e)), hint=LENGTH),
    _of_share("fire-threshold-from-above", "the smaller of the query's position and the threshold counts, not the larger",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.log(np.abs(c * np.minimum(q, t)) + 1) + e)), hint=LENGTH),
    _of_share("fire-threshold-added", "the threshold is added to the query's position",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.log(np.abs(c * (q + t)) + 1) + e)), hint=LENGTH),
    _of_share("fire-threshold-of-logarithm", "the threshold limits the logarithm, not the query's position",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.maximum(np.log(np.abs(c * q) + 1), t) + e)),
              hint=LENGTH),
    _of_share("fire-threshold-after", "the threshold is added after the logarithm",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.log(np.abs(c * q) + 1) + t + e)), hint=LENGTH),
    _of_share("fire-threshold-512", "the threshold is always 512",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / (np.log(c * np.maximum(q, 512.0) + 1) + e)), hint=LENGTH),
    _of_share("fire-number-of-keys", "the share is of the largest distance in the call, not of the query's position",
              _share(lambda a, q, c, t, e: np.log(c * a + 1)
              / (np.log(c * np.maximum(np.max(a, initial=0.0), t) + 1) + e)), hint=LENGTH),
    _of_share("fire-linear", "no logarithm is taken", _share(lambda apart, q, c, t, eps: apart / (np.maximum(q, t) + eps)),
              hint=LOGARITHM),
    _of_share("fire-log-without-one", "the logarithm is of c x, at least 1, without the one added",
              _share(lambda a, q, c, t, e: np.log(np.maximum(c * a, 1.0)) / (np.log(c * np.maximum(q, t) + 1) + e)),
              hint=LOGARITHM),
    _of_share("fire-c-outside", "c multiplies the logarithms, and cancels",
              _share(lambda a, q, c, t, e: c * np.log(a + 1) / (c * np.log(np.maximum(q, t) + 1) + e)), hint=LOGARITHM),
    _of_share("fire-eps-inside", "eps is inside the logarithm",
              _share(lambda a, q, c, t, e: np.log(c * a + 1) / np.log(c * np.maximum(q, t) + 1 + e)),
              hint="Add eps to the logarithm of the length."),
    _of_share("fire-share-bfloat16", "the share is held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32,
              seen_in="chuanyang-Zheng/DAPE@bde344a"),
    _of_network("fire-leaky", "the hidden layer has LeakyReLU", _network(lambda h: np.where(h > 0, h, 0.01 * h)), hint=RELU,
                seen_in="chuanyang-Zheng/DAPE@bde344a"),
    _of_network("fire-no-activation", "the hidden layer has no activation", _network(lambda h: h), hint=RELU),
    _of_network("fire-silu", "the hidden layer has SiLU", _network(lambda h: h / (1 + np.exp(-h))), hint=RELU),
    _of_network("fire-no-hidden-bias", "the first layer has no bias", argument(2, lambda b: 0 * b), hint=RELU),
    _of_network("fire-no-bias", "the second layer has no bias", argument(4, lambda b: 0 * b), hint=RELU),
    _of_network("fire-first-head", "every head has the weights of the first",
                lambda f: lambda s, w1, b1, w2, b2, /: f(s, w1, b1, *(np.broadcast_to(x[:1], x.shape) for x in (w2, b2))),
                hint=EACH_HEAD),
    _deviation("fire-future-zero", "keys after the query have distance 0", _future_zero,
               hint=BOTH_SIDES, seen_in="chuanyang-Zheng/DAPE@bde344a"),
    _deviation("fire-of-key", "the share is of the key's position, not of the query's",
               lambda f: lambda q, k, /, *learned, **o: np.swapaxes(f(k, q, *learned, **o), -1, -2), hint=LENGTH),
    _deviation("fire-off-by-one", "queries' positions are one too large", argument(0, lambda q: q + 1), hint=FROM_ZERO),
    _deviation("fire-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)",
               argument(0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)), hint=ARANGE),
    _deviation("fire-positions-bfloat16", "positions are held in bfloat16", held("bfloat16", 0, 1), hint=INTEGERS),
)  # fmt: skip
