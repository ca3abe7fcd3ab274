"""Dynamic position bias: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, cases_of, gradient, pairs, reals
from .tools.deviation import Function, Real, after, always, argument, around, deviations_of, held, narrowed, option
from .tools.hints import ARANGE, BRANCH, EACH_HEAD, INTEGERS, KEEP_FLOAT32, SIGN

OP = "dynamic_position_bias"
USUAL: dict[str, Any] = {"distance": "log"}
SIZES = {"L": 2}
KERNEL: tuple[dict[str, Any], ...] = ({"distance": "linear"}, {"distance": "log"})

HOLES = (0, 3, 3, 1, 9, 4, 20)
FAR = (0, 1, 255, 257, 2047, 2049, 65537, 131071)

_cases = cases_of(OP)


def _learned(name: str, heads: int, width: int, layers: int, bits: int = 8) -> dict[str, Any]:
    """Return the weights of a network, smaller in layers with more inputs."""
    shapes = {
        "w_in": (width,), "b_in": (width,), "w_hidden": (layers, width, width), "b_hidden": (layers, width),
        "w_out": (heads, width), "b_out": (heads,),
    }  # fmt: skip
    by = {"w_hidden": 2.0 / width, "w_out": 2.0 / width}
    return {key: reals(f"{OP} {name} {key}", *shape, bits=bits) * by.get(key, 0.5) for key, shape in shapes.items()}


def _case(
    name: str, q: Any, k: Any, heads: int = 3, width: int = 4, layers: int = 1, comment: str = "", *, bits: int = 8, **rest: Any
) -> Case:
    """Return a case, of the distance that its name begins with."""
    learned = _learned(name, heads, width, layers, bits) | rest.pop("given", {})
    options = {"distance": rest.pop("distance", name.partition("/")[0])}
    return _cases(name, options, {"q_positions": q, "k_positions": k, **learned}, comment, **rest)


def _gradient(name: str, q: Any, k: Any, sizes: tuple[int, int, int], out: tuple[int, ...], distance: str) -> Case:
    inputs = {"q_positions": q, "k_positions": k, **_learned(f"gradient {name}", *sizes)}
    return gradient(OP, name, inputs, {"out": out}, distance=distance)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("linear/small", (2, 7), (0, 2, 1, 3, 6), tier="smoke"),
        _case("linear/both-sides", (3, 8, 5), HOLES, 5, 3, 1, "keys before and after the query"),
        _case("linear/three-layers", (4, 6, 1), (1, 8), 3, 4, 3),
        _case("linear/no-hidden-layer", (4, 0), (1, 2, 9), 2, 6, 0, "two layers in all"),
        _case("linear/24-bits", (60, 95, 4), (1, 2, 20, 44, 95), 4, 7, 1, bits=24),
        _case("linear/one-unit", (2, 9), (0, 1, 2, 8), 3, 1, 1, "one hidden unit"),
        _case("log/far", (0, 2049), FAR, 2, 4),
        _case("log/65-units", (511, 3), (0, 1, 200, 511), 8, 65),
        _case("log/fractional", (0.5, 7.25), (1.75, 0.25, 3.0), 2, 4),
        _case("log/no-hidden-layer", (4, 0), (1, 2, 9), 2, 3, 0),
        _case("refused/layers", (2, 3), (0, 1, 2), 3, 4, 1, "a bias for each hidden unit", kind="reject",
              distance="log", given={"b_hidden": np.asarray([[0.5, 0.25, 1.0]])}),
        _case("refused/heads", (2, 3), (0, 1, 2), 3, 4, 1, "a bias for each head", kind="reject", distance="log",
              given={"b_out": np.asarray([0.5, 0.25])}),
        _case("refused/word", (2, 3), (0, 1, 2), comment="no such distance", kind="reject", distance="square"),
        *pairs(OP, USUAL, **_learned("pairs", 3, 4, 1)),
        _gradient("linear", (3, 6), (0, 1, 6), (2, 2, 1), (2, 2, 3), "linear"),
        _gradient("log", ((4, 5), (260, 262)), ((0, 5), (262, 250)), (1, 3, 1), (2, 1, 2, 2), "log"),
        _gradient("two-layers", (1, 3), (0, 2), (2, 2, 2), (2, 2, 2), "log"),
    )  # fmt: skip


@around
def _swapped(function: Function, q: Any, k: Any, /, *learned: Real, **options: Any) -> Real:
    return function(-q, -k, *learned, **options)


def _network(activation: Any) -> Any:
    """Return a wrap that computes the network with another activation."""

    def deviating(given: Real, w_in: Real, b_in: Real, w_hidden: Real, b_hidden: Real, w_out: Real, b_out: Real, /) -> Real:
        hidden = activation(given[..., None] * w_in + b_in)
        for weights, biases in zip(w_hidden, b_hidden, strict=True):
            hidden = activation(hidden @ weights.T + biases)
        return hidden @ w_out.T + b_out

    return lambda function: deviating


def _sigmoid(x: Real) -> Real:
    return np.exp(np.minimum(x, 0.0)) / (1 + np.exp(-np.abs(x)))


_deviation = deviations_of(OP)
_of_log = deviations_of("log_distance")
_of_network = deviations_of("distance_network")
LOGARITHM = "The input is sign(r) ln(1 + abs(r)), with the natural logarithm."
SILU = "Every layer but the last has SiLU: x times its sigmoid."
BIASES = "All layers have biases."
LAYERS = "Count the layers: the first, L hidden ones, each with weights of its own, and the last."

DEVIATIONS = (
    _deviation("dynamic-key-minus-query", "the distance has the other sign", _swapped, hint=SIGN),
    _deviation("dynamic-always-linear", "no logarithm is taken", option(distance=always("linear")), hint=BRANCH),
    _deviation("dynamic-always-log", "a logarithm is always taken", option(distance=always("log")), hint=BRANCH),
    _deviation("dynamic-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)",
               argument(0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)), hint=ARANGE),
    _deviation("dynamic-positions-bfloat16", "positions are held in bfloat16", held("bfloat16", 0, 1), hint=INTEGERS),
    _of_log("dynamic-log-unsigned", "the logarithm loses the sign of the distance", after(lambda out, *a: np.abs(out)),
            hint=LOGARITHM),
    _of_log("dynamic-log-without-one", "the logarithm is of the distance, at least 1, without the one added",
            lambda f: lambda r, /: np.sign(r) * np.log(np.maximum(np.abs(r), 1.0)), hint=LOGARITHM),
    _of_log("dynamic-log-2", "the logarithm has the base 2", after(lambda out, *a: out / np.log(2.0)), hint=LOGARITHM),
    _of_network("dynamic-relu", "the hidden layers have ReLU", _network(lambda x: np.maximum(x, 0.0)), hint=SILU,
                seen_in="vit-pytorch's CrossFormer, as a convention"),
    _of_network("dynamic-gelu", "the hidden layers have GELU, by its tanh form",
                _network(lambda x: x * _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), hint=SILU),
    _of_network("dynamic-sigmoid", "the hidden layers have the sigmoid", _network(_sigmoid), hint=SILU),
    _of_network("dynamic-no-activation", "the hidden layers have no activation", _network(lambda x: x), hint=SILU),
    _of_network("dynamic-hidden-bfloat16", "hidden layers are held in bfloat16",
                _network(lambda x: narrowed("bfloat16")(x * _sigmoid(x))), hint=KEEP_FLOAT32),
    _of_network("dynamic-transposed", "hidden weights are not transposed",
                lambda function: lambda given, w_in, b_in, w, *rest: function(given, w_in, b_in, np.swapaxes(w, -1, -2), *rest),
                hint="PyTorch stores weights as (out, in), JAX and TensorFlow as (in, out)."),
    _of_network("dynamic-first-layer", "every hidden layer has the weights of the first",
                lambda function: lambda *a: function(*a[:3], *(np.broadcast_to(x[:1], x.shape) for x in a[3:5]), *a[5:]),
                hint=LAYERS),
    _of_network("dynamic-layer-less", "the last hidden layer is left out",
                lambda function: lambda *a: function(*a[:3], *(x[:-1] for x in a[3:5]), *a[5:]), hint=LAYERS),
    _of_network("dynamic-no-first-bias", "the first layer has no bias", argument(2, lambda b: 0 * b), hint=BIASES),
    _of_network("dynamic-no-hidden-bias", "the hidden layers have no bias", argument(4, lambda b: 0 * b), hint=BIASES),
    _of_network("dynamic-no-bias", "the last layer has no bias", argument(6, lambda b: 0 * b), hint=BIASES),
    _of_network("dynamic-first-head", "every head has the weights of the first",
                lambda function: lambda *a: function(*a[:5], *(np.broadcast_to(x[:1], x.shape) for x in a[5:])),
                hint=EACH_HEAD),
)  # fmt: skip
