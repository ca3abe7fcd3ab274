"""Known mistakes of positions and frequencies from which several operations make angles or read rows, and of these angles."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tools.deviation import Deviation, Function, Real, Wrap, after, argument, around, narrowed, tf32
from ..tools.hints import ARANGE, EACH_ROW, EXPONENT, FRACTIONS, INTEGERS, SIGN, TENSOR_CORES

NARROW_INTEGERS = "Positions are held in an integer type that is too narrow: look for a packed index or a cast."
ROWS_4096 = "The table has 4096 rows."
TABLE_END = "Positions are limited or wrapped by the size of a table: build it as long as the text."
AUTOCAST = "Multiply position and frequency in float32, also under autocast."
REDUCTION = "A fast sine (fast-math, __sinf) reduces angles coarsely: use the accurate one, or reduce them in higher precision."
Change = Callable[[Any], Real]


def _positions(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    return {op: argument(0, change) for op in ("rope_table", "sinusoidal", "xpos_scales")}


def positions_of_tables(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return wraps that change the positions of every table and of learned rows."""
    return _positions(change) | {op: argument(0, change) for op in ("axial_table", "learned")}


def along_tokens(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes positions along the axis of tokens: the last, or the one before if the last is 1."""

    def changed(p: Any) -> Any:
        if np.ndim(p) > 1 and p.shape[-1] == 1 < p.shape[-2]:
            return np.swapaxes(change(np.swapaxes(p, -1, -2)), -1, -2)
        return change(p)

    return changed


def _arange(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape) if np.ndim(p) else np.zeros_like(p)


def _has_rows(p: Any) -> bool:
    """Return whether positions have an axis before that of tokens: not if they are (T, 1)."""
    return np.ndim(p) > 2 or (np.ndim(p) > 1 and p.shape[-1] > 1)


def changed_frequencies(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes inv_freq, knowing the options."""
    return {"rope_frequencies": after(lambda result, dim, **options: (change(result[0], dim, **options), result[1]))}


def plain_frequencies(base: float, dim: float, count: int) -> Real:
    """Return the first frequencies of a base and a width."""
    return np.asarray(base ** -(2 * np.arange(count) / dim))


@around
def _doubled(function: Function, p: Any, dim: int, /, *, base: float = 10_000.0, **options: Any) -> Any:
    return function(p, dim, base=base * base, **options)


def _wide(x: Any) -> Real:
    return np.asarray(x, dtype=np.float64)


def _angles(angle: Change, factor: Change = _wide, *, sums: bool = True) -> dict[str, Wrap]:
    """
    Return wraps in which angles are changed by `angle`, and what is multiplied to make them by `factor`.

    Without `sums` only angles of one product are meant.
    """

    def made(product: Callable[[Any, Any], Real]) -> Wrap:
        def deviating(x: Any, y: Any, /, *, phases: Any = 0.0, **rest: Any) -> tuple[Real, Real]:
            angles = angle(product(factor(x), factor(y)) + (0.0 if phases is None else factor(phases)))
            return np.cos(angles), np.sin(angles)

        def wrap(_: Function) -> Function:
            return deviating

        return wrap

    wraps = {"cos_sin_of_pairs": made(lambda p, f: p * f)}
    others = {
        "cos_sin_of_sums": made(lambda p, f: np.sum(p * f, axis=0)),
        "cos_sin_of_half_turns": made(lambda p, f: np.pi * np.sum(p * f, axis=0)),
    }
    return wraps | others if sums else wraps


def _reduced(*, fused: bool) -> Change:
    """Return the loss of whole turns in float32, by one constant: a - round(a / 2 pi) 2 pi."""
    single = narrowed("float32")
    turn = float(single(2 * np.pi))

    def change(angle: Any) -> Real:
        angle = single(angle)
        whole = np.rint(single(angle * float(single(1 / (2 * np.pi)))))
        return single(angle - (whole * turn if fused else single(whole * turn)))

    return change


DEVIATIONS = (
    Deviation("positions-plus-1", "positions are one too large", _positions(lambda p: p + 1),
              hint="A length is read after an append.", seen_in="mlx-vlm#1983, fla#766", one_of="position shift"),
    Deviation("positions-minus-1", "positions are one too small", _positions(lambda p: p - 1),
              hint="1 is subtracted twice: cumsum(mask) - 1 already counts from 0.", seen_in="vLLM#945",
              one_of="position shift"),
    Deviation("positions-negated", "positions are negated in the table", _positions(lambda p: -p), hint=SIGN,
              seen_in="lalamo#268"),
    Deviation("positions-absolute", "negative positions lose their sign", _positions(abs), hint="Positions are unsigned."),
    Deviation("positions-bfloat16", "positions are held in bfloat16", _positions(narrowed("bfloat16")), hint=INTEGERS,
              seen_in="candle#3520, InternLM#237"),
    Deviation("positions-float16", "positions are held in float16", _positions(narrowed("float16")), hint=INTEGERS,
              seen_in="Modalities#462"),
    Deviation("positions-int16", "positions overflow int16", _positions(lambda p: (np.trunc(p) + 2**15) % 2**16 - 2**15),
              hint="Fractions are lost as well."),
    Deviation("positions-int8", "positions overflow int8", _positions(lambda p: (np.trunc(p) + 2**7) % 2**8 - 2**7),
              hint=NARROW_INTEGERS),
    Deviation("positions-uint8", "positions are held in uint8: they wrap at 256", _positions(lambda p: np.trunc(p) % 2**8),
              hint=NARROW_INTEGERS),
    Deviation("positions-uint16", "positions are held in uint16: they wrap at 65536",
              _positions(lambda p: np.trunc(p) % 2**16), hint=NARROW_INTEGERS),
    Deviation("positions-uint32", "negative positions wrap at 2^32", _positions(lambda p: np.where(p < 0, p + 2.0**32, p)),
              hint="Positions are unsigned integers of 32 bits."),
    Deviation("positions-truncated", "fractional positions are truncated to integers", _positions(np.trunc), hint=FRACTIONS),
    Deviation("positions-clamped-4095", "positions beyond 4095 are clamped", _positions(lambda p: np.minimum(p, 4095)),
              hint=ROWS_4096, seen_in="vllm-ascend#1266, pegainfer#220"),
    Deviation("positions-table-4096", "positions are rows of a table of 4096: truncated, and clamped to 0 and 4095",
              _positions(lambda p: np.clip(np.trunc(p), 0, 4095)), hint=ROWS_4096, seen_in="pegainfer#220"),
    Deviation("positions-wrapped-4096", "positions wrap at 4096", _positions(lambda p: np.trunc(p) % 4096), hint=TABLE_END),
    Deviation("positions-wrapped-8192", "positions wrap at 8192", _positions(lambda p: np.trunc(p) % 8192), hint=TABLE_END),
    Deviation("positions-arange", "0, 1, 2, ... is used in place of the positions", _positions(along_tokens(_arange)),
              hint=ARANGE, seen_in="keras-hub#1544", one_of="positions"),
    Deviation("positions-arange-prefill", "0, 1, 2, ... is used in place of the positions where there are several",
              _positions(along_tokens(lambda p: _arange(p) if np.ndim(p) and p.shape[-1] > 1 else p)), hint=ARANGE),
    Deviation("positions-from-first", "positions count from the first of the call",
              _positions(along_tokens(lambda p: p - p[..., :1] if np.ndim(p) and p.shape[-1] else p)),
              hint="Positions are absolute: do not subtract the first position of the call.", seen_in="transformers#43082",
              one_of="positions"),
    Deviation("positions-first-row", "row 0's positions are used for all rows",
              _positions(lambda p: np.broadcast_to(p[:1], p.shape) if _has_rows(p) and p.shape[0] else p), hint=EACH_ROW,
              seen_in="Liger-Kernel#477"),
    Deviation("positions-rows-at-0", "rows after the first are all at position 0",
              _positions(lambda p: np.concatenate([p[:1], 0 * p[1:]]) if _has_rows(p) else p),
              hint="Only the first row's offset is filled in."),
    Deviation("positions-4096-at-0", "position 4096 reads row 0", _positions(lambda p: np.where(np.abs(p) == 4096, 0 * p, p)),
              hint="The token at the boundary of a table of 4096 rows."),
    Deviation("positions-reversed", "positions are in reverse order", _positions(lambda p: p[..., ::-1] if np.ndim(p) else p),
              hint="Look for a flip, or a range that counts down."),
    Deviation("exponent-doubled", "the exponent is 4i/d rather than 2i/d",
              changed_frequencies(lambda f, d, *, base, **o: f * plain_frequencies(base, d / 2,
              d // 2) / plain_frequencies(base, d, d // 2)) | {"sinusoidal": _doubled}, hint=EXPONENT,
              seen_in="a much copied tutorial", one_of="exponent"),
    Deviation("angles-bfloat16", "angles are formed in bfloat16", _angles(narrowed("bfloat16")), hint=AUTOCAST,
              seen_in="MLX#2791"),
    Deviation("angles-autocast", "positions, frequencies and their products are held in bfloat16",
              _angles(narrowed("bfloat16"), narrowed("bfloat16")), hint=AUTOCAST),
    Deviation("angles-float16", "angles are formed in float16", _angles(narrowed("float16")), hint=AUTOCAST,
              seen_in="keras-hub#1508"),
    Deviation("angles-tf32", "positions and frequencies are multiplied in TensorFloat-32", _angles(_wide, tf32),
              hint=TENSOR_CORES, seen_in="transformers#48428"),
    Deviation("angles-reduced", "angles lose their whole turns in float32, by one constant 2 pi",
              _angles(_reduced(fused=False), narrowed("float32"), sums=False), hint=REDUCTION),
    Deviation("angles-reduced-fused", "angles lose their whole turns in float32, by one constant 2 pi and a fused product",
              _angles(_reduced(fused=True), narrowed("float32"), sums=False), hint=REDUCTION),
)  # fmt: skip
