"""Continuous relative position bias of Swin v2: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, cases_of, gradient, reals
from .tools.deviation import Function, Real, after, always, argument, around, before, deviations_of, held, option
from .tools.hints import BRANCH, EACH_HEAD, HEIGHT_WIDTH, KEEP_FLOAT32, SIGN

OP = "continuous_position_bias"
SWIN: dict[str, Any] = {"form": "swin"}
CR: dict[str, Any] = {"form": "cr"}
SATURATES = True  # its sigmoids are 0, 1/2 or 1
USUAL: dict[str, Any] = {"height": 2, "width": 3, **SWIN}
GAPS = ("log-spaced-truncated", "log-spaced-bfloat16", "window-bias-frame-stride")  # its offsets are small integers, one frame
OTHER_VALUES = {"pretrained_height": 6, "pretrained_width": 7, "height": 4, "width": 5}
SIZES = {"m": 5}
KERNEL: tuple[dict[str, Any], ...] = ({"height": 8, "width": 7, **SWIN}, {"height": 6, "width": 9, **CR})

_cases = cases_of(OP)


def _weights(name: str, hidden: int, heads: int, bits: int = 8, last: bool = False) -> dict[str, Any]:
    """Return the weights of a network; `last` gives the second layer a bias."""
    shapes: dict[str, tuple[int, ...]] = {"w1": (hidden, 2), "b1": (hidden,), "w2": (heads, hidden), "b2": (heads,)}
    room = {"w1": 4, "b1": 8, "w2": 8, "b2": 2}  # sigmoids of small numbers are asked in half precision too
    made = {of: reals(OP + name + of, *shape, bits=bits) / room[of] for of, shape in shapes.items()}
    return made if last else made | {"b2": None}


def _case(
    name: str, window: tuple[int, int], heads: int = 3, hidden: int = 4, comment: str = "", *,
    trained: tuple[int | None, int | None] | None = None, bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of a window; the first part of its name is the form."""
    weights = _weights(name, hidden, heads, bits, rest.pop("last", name.startswith("cr"))) | rest.pop("given", {})
    word = rest.pop("word", "cr" if name.startswith("cr") else "swin")
    params: dict[str, Any] = {"height": window[0], "width": window[1], "form": word}
    if trained is not None:
        params |= {"pretrained_height": trained[0], "pretrained_width": trained[1]}
    return _cases(name, params, {k: x for k, x in weights.items() if x is not None}, comment, **rest)


def _gradient(name: str, window: tuple[int, int], heads: int, hidden: int, **params: Any) -> Case:
    weights = _weights("gradient" + name, hidden, heads, last=params["form"] == "cr")
    out: dict[str, tuple[int, ...]] = {"out": (heads, window[0] * window[1], window[0] * window[1])}
    inputs = {k: x for k, x in weights.items() if x is not None}
    return gradient(OP, name, inputs, out, height=window[0], width=window[1], **params)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("swin/small", (2, 3), tier="smoke"),
        _case("swin/8", (8, 8), 1, 16, "Swin v2: windows of 8 by 8; fewer heads and hidden units"),
        _case("swin/16-of-8", (10, 3), 1, 8, "larger windows than in training", trained=(8, 8)),
        _case("swin/other-window", (2, 3), 2, 4, trained=(5, 9)),
        _case("swin/trained-height", (3, 2), 3, 3, trained=(12, None)),
        _case("swin/512", (2, 3), 2, 512, "512 hidden units"),
        _case("swin/24-bits", (3, 2), 5, 6, bits=24),
        _case("swin/trained-one", (3, 2), 2, 4, "trained with one row: undivided", trained=(1, 4)),
        _case("swin/last-bias", (2, 3), 4, 3, "a bias in the second layer", last=True),
        _case("cr/no-last-bias", (2, 4), 3, 2, last=False),
        _case("cr/65", (5, 13), 1, 3, "65 cells"),
        _case("forms/strided", (2, 3), 4, 3, form="non-contiguous"),
        _case("forms/strided-cr", (3, 2), 2, 4, word="cr", last=True, form="non-contiguous"),
        _case("refused/layers", (2, 3), 3, 4, "a bias for each hidden unit", kind="reject",
              given={"b1": np.asarray([0.5, 0.25, 1.0])}),
        _case("refused/coordinates", (2, 3), 3, 4, "three coordinates", kind="reject", given={"w1": reals("three", 4, 3)}),
        _case("refused/form", (2, 3), 3, 4, "no such form", kind="reject", word="rw"),
        _gradient("swin", (2, 3), 2, 2, form="swin"),
        _gradient("trained", (2, 2), 1, 3, form="swin", pretrained_height=4, pretrained_width=6),
        _gradient("cr", (3, 2), 2, 3, form="cr"),
        _gradient("cr-row", (1, 3), 3, 2, form="cr"),
    )  # fmt: skip


def _network(activation: Any) -> Any:
    def deviating(function: Function, y: Real, x: Real, w1: Real, b1: Real, w2: Real, b2: Real | None = None, /) -> Real:
        hidden = activation(y[:, None, None] * w1[:, 0] + x[None, :, None] * w1[:, 1] + b1)
        return hidden.reshape(-1, len(w1)) @ w2.T + (0 if b2 is None else b2)

    return around(deviating)


def _first_head(y: Real, x: Real, w1: Real, b1: Real, w2: Real, b2: Real | None = None, /) -> Any:
    first = [np.broadcast_to(part[:1], part.shape) for part in (w2, b2) if part is not None]
    return (y, x, w1, b1, *first), {}


def _exchanged(*layers: Any, **options: Any) -> Any:
    h, w = options.get("pretrained_height"), options.get("pretrained_width")
    return layers, options | {"pretrained_height": w, "pretrained_width": h}


_deviation = deviations_of(OP)
_of_network = deviations_of("offset_network")
_of_bias = deviations_of("bounded_bias")
SIGMOID = "Swin v2 has 16 times the sigmoid of the network's output."
RELU = "The network has one hidden layer with ReLU. Its second layer has no bias in Swin v2, and one in timm's mode cr."
TRAINED = "Divide offsets by the window in training less 1, not by the window in use."

DEVIATIONS = (
    _deviation("continuous-swin-as-cr", "form 'swin' is computed as form 'cr'", option(form=always("cr")), hint=BRANCH),
    _deviation("continuous-cr-as-swin", "form 'cr' is computed as form 'swin'", option(form=always("swin")), hint=BRANCH),
    _deviation("continuous-not-pretrained", "the pretrained window is ignored",
               option(pretrained_height=always(None), pretrained_width=always(None)), hint=TRAINED),
    _deviation("continuous-pretrained-exchanged", "the pretrained window has height and width exchanged", before(_exchanged),
               hint=HEIGHT_WIDTH),
    _deviation("continuous-transposed", "offsets are key minus query", after(lambda out, *a, **o: np.swapaxes(out, -1, -2)),
               hint=SIGN),
    _of_network("continuous-exchanged", "the network sees the column first",
                argument(2, lambda w1: w1[:, ::-1]), hint=HEIGHT_WIDTH),
    _of_network("continuous-no-activation", "the hidden layer has no activation", _network(lambda h: h), hint=RELU),
    _of_network("continuous-gelu", "the hidden layer has GELU, approximated by a sigmoid",
                _network(lambda h: h / (1 + np.exp(-1.702 * h))), hint=RELU),
    _of_network("continuous-no-hidden-bias", "the first layer has no bias", argument(3, lambda b: 0 * b), hint=RELU),
    _of_network("continuous-no-bias", "the second layer has no bias",
                before(lambda y, x, w1, b1, w2, b2=None, /: ((y, x, w1, b1, w2), {})), hint=RELU),
    _of_network("continuous-first-head", "every head has the weights of the first", before(_first_head), hint=EACH_HEAD),
    _of_network("continuous-bfloat16", "coordinates are held in bfloat16", held("bfloat16", 0, 1), hint=KEEP_FLOAT32),
    _of_bias("continuous-no-sigmoid", "the sigmoid is missing", lambda f: lambda table, /: 16 * table, hint=SIGMOID),
    _of_bias("continuous-no-16", "the sigmoid is not multiplied by 16", after(lambda out, *a: out / 16), hint=SIGMOID),
    _of_bias("continuous-8", "the sigmoid is centred: 16 times it, less 8", after(lambda out, *a: out - 8), hint=SIGMOID),
    _of_bias("continuous-tanh", "a tanh takes the sigmoid's place", lambda f: lambda table, /: 16 * np.tanh(table),
             hint=SIGMOID),
)  # fmt: skip
