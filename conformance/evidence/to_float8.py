"""Storage in 8 bits: cases and known mistakes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from posref.backends.rounding import BITS, LARGEST, LEAST, saturated

from .tools import Case, Function, Real, Wrap, cases_of, reals
from .tools.deviation import after, argument, around, around_with, before, deviations_of, held, narrowed, option
from .tools.hints import ROUND_ONCE

OP = "to_float8"

USUAL: dict[str, Any] = {"format": "e4m3fn", "direction": "divide"}
SIZES: dict[str, Any] = {"H": 3, "D": 5}
KERNEL: tuple[dict[str, Any], ...] = ({"format": "e4m3fn", "direction": "divide"}, {"format": "e5m2", "direction": "multiply"})
KERNEL_SIZES: dict[str, Any] = {"H": 3, "D": 64}
WAY = 0
OTHER_VALUES: dict[str, Any] = {"format": "e5m2", "direction": "multiply"}

_make = cases_of(OP)

TIES = {  # halfway between two numbers, normal and subnormal, the last one beyond the range
    "e4m3fn": (17.0, 19.0, -21.0, 1.0625, -1.1875, 0.0390625, 3 * 2.0**-10, -(2.0**-10), 5 * 2.0**-10, 200.0, -408.0, 464.0),
    "e4m3fnuz": (17.0, 19.0, -21.0, 1.0625, -1.1875, 0.0390625, 3 * 2.0**-11, -(2.0**-11), 5 * 2.0**-11, 100.0, -204.0, 248.0),
    "e5m2": (9.0, 11.0, -13.0, 1.125, -1.375, 0.0546875, 3 * 2.0**-17, -(2.0**-17), 5 * 2.0**-17, 208.0, -416.0, 61440.0),
}
BEYOND = {
    "e4m3fn": (448.0, -448.0, 449.0, 460.0, -465.0, 480.0, 512.0, -1000.0, 256.0, -288.0, 240.0, 239.0),
    "e4m3fnuz": (240.0, -240.0, 241.0, 247.0, -249.0, 256.0, 448.0, -1000.0, 128.0, -144.0, 231.0, 232.0),
    "e5m2": (57344.0, -57344.0, 58000.0, -61440.0, 61600.0, 64000.0, 65504.0, -65504.0, 32768.0, -40960.0, 448.0, 480.0),
}
SMALL = {  # multiples of a quarter of the smallest subnormal, up to the smallest normal number
    "e4m3fn": np.asarray((0, 1, -1, 2, 3, -3, 5, 6, -7, 13, 26, -29)) * 2.0**-11,
    "e5m2": np.asarray((0, 1, -1, 2, 3, -3, 5, 6, -7, 9, 13, -15)) * 2.0**-18,
    "e4m3fnuz": np.asarray((0, 1, -1, 2, 3, -3, 5, 6, -7, 13, 26, -29)) * 2.0**-12,
}


def _case(
    name: str, x: Any, scale: Any, comment: str = "", *, format: str = "e4m3fn",
    direction: str = "divide", bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of numbers, or of a shape, and of scales."""
    if isinstance(x, tuple) and all(isinstance(n, int) for n in x):
        x = reals(f"float8 {name} x", *x, bits=bits)
    inputs = {"x": np.asarray(x, dtype=np.float64), "scale": np.asarray(scale, dtype=np.float64)}
    return _make(name, {"format": format, "direction": direction}, inputs, comment, **rest)


def _rows(numbers: Any, heads: int) -> Real:
    """Return numbers as rows of (tokens, heads, channels)."""
    return np.asarray(numbers, dtype=np.float64).reshape(2, heads, -1)


def _scales(heads: int) -> Real:
    """Return scales of 24 bits, from 1/16 on, that differ from head to head."""
    return (1 + np.abs(reals("float8 scales", heads, bits=22)) / 8) / 2.0 ** (np.arange(heads) % 4 + 1)


def _grid(*shape: int) -> Real:
    """Return scales of a shape, from 1/8 to 1, no two neighbours alike."""
    return _scales(int(np.prod(shape))).reshape(shape) * 2


def _of_format(name: str) -> tuple[Case, ...]:
    """Return the cases that ask the numbers of one format. Scales are powers of two, so no other number is right."""
    f: dict[str, Any] = {"format": name}
    unit = 2.0**-2
    return (
        _case(f"{name}/ties-multiplied", _rows(TIES[name], 2) * unit, [4.0], direction="multiply", **f),
        _case(f"{name}/beyond", _rows(BEYOND[name], 3), [1.0], **f),
        _case(f"{name}/beyond-multiplied", (3, 2, 5), [64.0, 2.0**14], direction="multiply", **f),
        _case(f"{name}/subnormal", _rows(SMALL[name], 2), [1.0], **f),
        _case(f"{name}/subnormal-scaled", _rows(SMALL[name], 3) / 4, [0.25, 0.25, 0.125], **f),
        _case(f"{name}/small", (2, 2, 7), [2.0**10, 2.0**17], "many become 0", **f),
        _case(f"{name}/inexact", (3, 3, 8), _scales(3), "quotients that float32 does not hold", bits=24, **f),
    )


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (2, 1, 6), [0.5], tier="smoke"),
        _case("plain/scale-without-axes", (2, 3, 4), 0.25),
        _case("plain/heads-multiplied", (3, 5, 4), [4.0, 1.0, 16.0, 2.0, 0.5], format="e5m2", direction="multiply"),
        _case("plain/as-many-heads-as-tokens", (4, 4, 3), [0.125, 2.0, 0.5, 1.0], format="e5m2"),
        *_of_format("e4m3fn"),
        *_of_format("e5m2"),
        *_of_format("e4m3fnuz"),
        *(
            _case(f"{'tokens' if len(scales) < len(shape) else 'blocks'}/{'-'.join(map(str, scales))}", shape, _grid(*scales),
                  format=name, direction=way, bits=bits)
            for shape, scales, name, way, bits in (
                ((4, 3, 5), (4, 3), "e4m3fn", "divide", 8),
                ((2, 3, 2, 4), (2, 3, 2), "e5m2", "multiply", 8),
                ((3, 5, 7), (3, 5), "e4m3fnuz", "divide", 24),
                ((3, 2, 12), (3, 2, 3), "e4m3fn", "divide", 8),
                ((2, 4, 3, 10), (2, 4, 3, 5), "e5m2", "multiply", 8),
                ((5, 4, 8), (5, 4, 2), "e4m3fn", "divide", 24),
                ((3, 1, 9), (3, 1, 1), "e4m3fnuz", "divide", 8),
                ((5, 6), (5, 2), "e4m3fn", "divide", 8),
            )
        ),
        _case("models/mla-blocks", (2, 1, 512), _grid(2, 1, 4), "FlashMLA's blocks of 128 channels"),
        _case("models/values-128", (1, 2, 128), [0.0234375], "heads of 128 channels, one scale"),
        _case("models/heads-64", (1, 8, 64), _scales(8), "a scale for each of 8 heads", bits=24),
        _case("models/mla", (1, 1, 576), [0.0625], "512 channels of the latent vector and 64 that rotate",
              direction="multiply", format="e5m2"),
        _case("empty/channels", (2, 3, 0), [0.5], format="e5m2"),
        _case("empty/channels-of-a-head", (3, 1, 0), [2.0], direction="multiply"),
        _case("forms/strided-channels", (3, 2, 10), [0.375], format="e5m2", form="non-contiguous"),
        _case("forms/batch-one", (1, 3, 2, 4), [0.25, 1.5]),
        _case("forms/one-channel", (3, 2, 1), [0.5, 2.0], format="e5m2", direction="multiply"),
        _case("forms/length-zero", (2, 0, 3, 4), [0.5, 2.0, 0.25]),
        _case("refused/heads", (2, 3, 4), [0.5, 1.0], "two scales for three heads", kind="reject"),
        _case("refused/channels", (2, 3, 4), [0.5, 1.0, 2.0, 4.0], "a scale for each channel", kind="reject"),
        _case("refused/tokens", (2, 3, 4), [[[0.5]], [[1.0]]], "a scale for each token", kind="reject"),
        _case("refused/blocks", (2, 3, 4), _grid(2, 3, 3), "three blocks of four channels", kind="reject"),
        _case("refused/format", (2, 3, 4), [0.5], "e5m2fnuz is another format", format="e5m2fnuz", kind="reject"),
        _case("refused/direction", (2, 3, 4), [0.5], direction="inverse", kind="reject"),
    )  # fmt: skip


DIRECTION = "A scale of vLLM or SGLang divides, FlashInfer's quant_scale multiplies: look at what the reader does."
RANGE = "e4m3fn ends at 448 and e5m2 at 57344. Limit first, then cast: casts differ beyond the range."
EACH_TOKEN = "Scales of (..., heads) or (..., heads, blocks) belong to a token, and a block to neighbouring channels."
EACH_HEAD = "Index the scales by the head of the key or value, not of the query."
NEAREST = "Round to the nearest, and halves to the even one: add the lowest bit that stays, and half of it less 1."
FORMAT = "Compare the dtype of the cache with that in which it is read."


def _scaled(x: Real, scale: Real, direction: str) -> Real:
    each = scale.reshape(-1, 1) if scale.ndim < 2 else scale[..., None]
    if scale.ndim == x.ndim:
        each = np.repeat(scale, x.shape[-1] // scale.shape[-1], axis=-1)
    return x / each if direction == "divide" else x * each


@around_with
def _stored(
    change: Callable[[Real, str], Real], function: Function, x: Real, scale: Real, /, *, format: str, direction: str
) -> Real:
    """The scaled numbers are stored otherwise: `change` takes them and the dtype."""
    with np.errstate(all="ignore"):
        return change(_scaled(x, scale, direction), f"float8_{format}")


def _nearest(v: Real, dtype: str, largest: float | None = None) -> Real:
    return saturated(v, BITS[dtype], LEAST[dtype], LARGEST[dtype] if largest is None else largest)


def _overflowing(v: Real, dtype: str) -> Real:
    """Return NaN in e4m3fn and infinity in e5m2 beyond the range, as a plain cast does."""
    wide = _nearest(v, dtype, 2.0**60)
    over = np.nan if dtype == "float8_e4m3fn" else np.copysign(np.inf, v)
    return np.where(np.abs(wide) > LARGEST[dtype], over, wide)


def _in_steps(rounded: Callable[[Real], Real], v: Real, dtype: str) -> Real:
    """The number of steps is rounded in another way."""
    limited = np.clip(v, -LARGEST[dtype], LARGEST[dtype])
    step = np.ldexp(1.0, np.maximum(np.frexp(limited)[1] - BITS[dtype], LEAST[dtype]))  # the distance of neighbours
    return _nearest(rounded(limited / step) * step, dtype)


def _limited(share: float) -> Callable[[Real, str], Real]:
    """Return what ends the range at a share of it."""
    return lambda v, dtype: _nearest(np.clip(v, -LARGEST[dtype] * share, LARGEST[dtype] * share), dtype)


def _early(v: Real, dtype: str) -> Real:
    """Return the largest number in place of all that have the largest exponent."""
    nearest = _nearest(v, dtype)
    top = 2.0 ** (np.frexp(LARGEST[dtype])[1] - 1)
    return np.where(np.abs(v) >= top, np.copysign(LARGEST[dtype], v), nearest)


def _flushed(v: Real, dtype: str) -> Real:
    nearest = _nearest(v, dtype)
    return np.where(np.abs(nearest) < 2.0 ** (LEAST[dtype] + BITS[dtype] - 1), 0.0, nearest)


def _not_a_zero(v: Real, dtype: str) -> Real:
    nearest = _nearest(v, dtype)
    return np.where((nearest == 0) & np.signbit(v), np.nan, nearest)


def _through(narrow: str) -> Callable[[Real, str], Real]:
    return lambda v, dtype: _nearest(narrowed(narrow)(v), dtype)


@around_with
def _tail(v_of: Callable[[Real], Real], function: Function, x: Real, scale: Real, /, **options: Any) -> Real:
    """The channels beyond a multiple of four get another scale."""
    kept = x.shape[-1] // 4 * 4
    whole = function(x, scale, **options)
    return np.concatenate([whole[..., :kept], function(x, v_of(scale), **options)[..., kept:]], axis=-1)


def _blocks(change: Callable[[Real], Real]) -> Wrap:
    """Return a wrap that changes the scales of blocks."""
    return before(lambda x, scale, /, **options: ((x, change(scale) if scale.ndim == x.ndim else scale), options))


@around
def _by_turns(function: Function, x: Real, scale: Real, /, **options: Any) -> Real:
    """Scales of blocks take turns."""
    if scale.ndim != x.ndim:
        return function(x, scale, **options)
    n = scale.shape[-1]
    turned = np.swapaxes(x.reshape(*scale.shape[:-1], -1, n), -1, -2).reshape(x.shape)
    result = function(turned, scale, **options).reshape(*scale.shape, -1)
    return np.swapaxes(result, -1, -2).reshape(x.shape)


def _own_scale(x: Real, scale: Real, /, *, format: str, direction: str) -> Any:
    most = np.max(np.abs(x), initial=2.0**-20) / LARGEST[f"float8_{format}"]
    return (x, np.asarray([most if direction == "divide" else 1 / most])), {"format": format, "direction": direction}


def _scaled_back(out: Real, x: Real, scale: Real, /, *, format: str, direction: str) -> Real:
    return _scaled(out, scale, "multiply" if direction == "divide" else "divide")


_deviation = deviations_of(OP)

DEVIATIONS = (
    _deviation("float8-scale-inverted", "the scale multiplies where it should divide, or the other way round",
               option(direction=lambda word: "multiply" if word == "divide" else "divide"), hint=DIRECTION,
               seen_in="vllm-project/vllm-xpu-kernels#475"),
    _deviation("float8-scale-ignored", "the scale is ignored", argument(1, np.ones_like), hint=DIRECTION),
    _deviation("float8-scale-twice", "the scale is applied twice", argument(1, lambda scale: scale * scale), hint=DIRECTION),
    _deviation("float8-scaled-back", "the result is multiplied by the scale again, as a reader does", after(_scaled_back),
               hint="Return the numbers that the bytes stand for, without their scale."),
    _deviation("float8-own-scale", "the scale is computed from the numbers, and the given one ignored", before(_own_scale),
               hint="Use the scale that is given: the reader has no other."),
    _deviation("float8-first-head", "all heads get the scale of the first head", argument(1, lambda s: s.reshape(-1)[:1]),
               hint=EACH_HEAD),
    _deviation("float8-next-head", "each head gets the scale of the next one",
               argument(1, lambda s: np.roll(s, -1) if s.ndim else s), hint=EACH_HEAD),
    _deviation("float8-first-token", "all tokens get the scales of the first token",
               argument(1, lambda s: np.broadcast_to(s[:1], s.shape) if s.ndim > 1 else s), hint=EACH_TOKEN),
    _deviation("float8-first-block", "all blocks get the scale of the first block", _blocks(lambda s: s[..., :1] + 0 * s),
               hint=EACH_TOKEN),
    _deviation("float8-blocks-interleaved", "channel c has the scale c mod n, not that of its block of neighbours", _by_turns,
               hint=EACH_TOKEN),
    _deviation("float8-tail-unscaled", "channels beyond a multiple of four are not scaled", _tail(np.ones_like),
               hint="A vectorized loop has a tail: scale there too."),
    _deviation("float8-overflow", "beyond the range is NaN in e4m3fn and infinity in e5m2", _stored(_overflowing), hint=RANGE,
               seen_in="vllm-project/vllm-xpu-kernels#475, jax-ml/ml_dtypes#400"),
    _deviation("float8-range-of-fnuz", "e4m3fn ends at 240, as e4m3fnuz does", _stored(
        lambda v, dtype: _nearest(np.clip(v, -240, 240) if dtype == "float8_e4m3fn" else v, dtype)), hint=RANGE),
    _deviation("float8-half-range", "the range ends at half of its largest number", _stored(_limited(0.5)), hint=RANGE,
               seen_in="sglang#30900"),
    _deviation("float8-saturates-early", "all numbers of the largest exponent become the largest number", _stored(_early),
               hint=RANGE, seen_in="sglang#40581"),
    _deviation("float8-truncated", "bits are cut off", _stored(partial(_in_steps, np.trunc)), hint=NEAREST),
    _deviation("float8-rounded-down", "numbers are rounded down", _stored(partial(_in_steps, np.floor)), hint=NEAREST),
    _deviation("float8-half-up", "halves are rounded away from 0",
               _stored(partial(_in_steps, lambda n: np.copysign(np.floor(np.abs(n) + 0.5), n))), hint=NEAREST,
               seen_in="sglang#40581"),
    _deviation("float8-not-rounded", "numbers are scaled and limited, but keep their bits",
               _stored(lambda v, dtype: np.clip(v, -LARGEST[dtype], LARGEST[dtype])),
               hint="Return what the cache holds, not what is given to it."),
    _deviation("float8-flushed", "numbers below the smallest normal one become 0", _stored(_flushed),
               hint="Both formats have subnormal numbers: flags for fast arithmetic must not flush them."),
    _deviation("float8-zero-nan", "numbers below 0 that round to 0 become NaN", _stored(_not_a_zero),
               hint="Byte 0x80 is -0 here, and NaN in e4m3fnuz."),
    _deviation("float8-format", "e5m2 is taken for e4m3fn, and e4m3fn for e5m2",
               option(format=lambda word: "e5m2" if word == "e4m3fn" else "e4m3fn"), hint=FORMAT),
    _deviation("float8-read-as-fnuz", "every number is half of what it should be", after(lambda out, *args, **options: out / 2),
               hint=f"{FORMAT} A byte of e4m3fnuz is half of what it is in e4m3fn."),
    *(
        _deviation(f"float8-through-{dtype}", f"scaled numbers are rounded to {dtype} before they are rounded to 8 bits",
                   _stored(_through(dtype)), hint=ROUND_ONCE)
        for dtype in ("bfloat16", "float16")
    ),
    _deviation("float8-rows-bfloat16", "numbers are held in bfloat16 before they are scaled", held("bfloat16", 0),
               hint=ROUND_ONCE),
    _deviation("float8-scale-bfloat16", "the scale is held in bfloat16", held("bfloat16", 1), hint=ROUND_ONCE),
)  # fmt: skip
