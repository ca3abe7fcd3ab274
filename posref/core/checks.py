"""
Checks of arguments. Each error is one sentence: function, argument, requirement and value. No check reads array values.

Checks of options return the option, with NumPy scalars converted to Python numbers.
"""

from typing import Any

from posref.core.arrays import Array, are_numpy, check_signs, is_compiling, library, namespace
from posref.spec import MISSING
from posref.surroundings import not_plain

LARGEST_INTEGER = 2**31 - 1  # for options: they are combined with positions, which have 32 bits in JAX
LARGEST_REAL = float.fromhex("0x1.fffffffffffffp+1023")
SMALLEST_REAL = float.fromhex("0x1p-1022")  # the smallest normal float64
LONGEST = 500  # characters of a value in an error message
ALSO_CALLED = {  # libraries' names for posref's words
    "neox": "half", "gpt-neox": "half", "gpt_neox": "half", "is_neox_style": "half", "rotate_half": "half", "split": "half",
    "gptj": "interleaved", "gpt-j": "interleaved", "gpt_j": "interleaved", "pairs": "interleaved", "adjacent": "interleaved",
    "mrope": "chunked", "imrope": "interleaved",
}  # fmt: skip


def check_positions(function: str, argument: str, positions: Array) -> None:
    """Raise if positions are neither integer nor at least float32, or are unsigned integers too wide (`check_signs`)."""
    xp = namespace(positions, function=function, names=(argument,))
    if positions.dtype == xp.int64:  # the common case; the rest is slow
        return
    if xp.isdtype(positions.dtype, "integral"):
        check_signs(function, argument, positions)
        return
    if not xp.isdtype(positions.dtype, "real floating") or xp.finfo(positions.dtype).bits < 32:
        msg = (
            f"{function}: {argument} must be integer or at least float32 (bfloat16 cannot tell 256 from 257, nor float16 "
            f"2048 from 2049); got {positions.dtype}."
        )
        raise ValueError(msg)


def check_frequencies(
    function: str, argument: str, frequencies: Array, reason: str = "angles at position 1000 are off by up to 2"
) -> None:  # fmt: skip
    """Raise if frequencies, or other factors, are not real, or narrow, like a buffer after ``model.to(bfloat16)``."""
    if are_numpy(type(frequencies)):
        kind = "f" if is_compiling() else frequencies.dtype.kind
        narrow, real = frequencies.itemsize < 4 and kind not in "iu", kind in "iuf"
    else:
        xp = namespace(frequencies, function=function, names=(argument,))
        real = xp.isdtype(frequencies.dtype, "real floating")
        narrow = xp.finfo(frequencies.dtype).bits < 32 if real else xp.isdtype(frequencies.dtype, "bool")
    if not real:
        check_numbers(function, **{argument: frequencies})
    if narrow:
        msg = f"{function}: {argument} must be at least float32 (in bfloat16, {reason}); got {frequencies.dtype}."
        raise ValueError(msg)


def check_real(function: str, **arrays: Array) -> None:
    """Raise if an array is not real floating. The keywords are the names of the arguments."""
    for argument, x in arrays.items():
        if not namespace(x, function=function, names=(argument,)).isdtype(x.dtype, "real floating"):
            remedy = (
                "Give real and imaginary parts as two channels"
                if "complex" in str(x.dtype)
                else "Convert it to a floating dtype"
            )
            msg = f"{function}: {argument} must be real floating; got {x.dtype}. {remedy}."
            raise ValueError(msg)
        if getattr(x, "is_sparse", False):  # products with it may be sparse, and other numbers
            raise TypeError(not_plain(function, argument, x))


def check_numbers(function: str, *, kinds: tuple[str, ...] = ("bool", "integral", "real floating"), **arrays: Array) -> None:
    """Raise if an array does not hold real numbers, or others of the `kinds` named."""
    for argument, x in arrays.items():
        if not namespace(x, function=function, names=(argument,)).isdtype(x.dtype, kinds):
            raise TypeError(not_plain(function, argument, x))


def check_lanes(function: str, argument: str, x: Array) -> None:
    """Raise if an array is not real floating, or has no axis of channels."""
    xp = namespace(x, function=function, names=(argument,))
    if not xp.isdtype(x.dtype, "real floating"):  # the common case first
        if xp.isdtype(x.dtype, "integral"):
            msg = f"{function}: {argument} must be real floating; got {x.dtype}. Pass it before positions, in a floating dtype."
            raise ValueError(msg)
        check_real(function, **{argument: x})
    if x.ndim < 1:
        msg = f"{function}: {argument} must have an axis of channels; got shape ()."
        raise ValueError(msg)


def check_tokens(function: str, **positions: Array) -> None:
    """Raise if positions have no axis of tokens. The keywords are the names of the arguments."""
    for argument, p in positions.items():
        library(function, **{argument: p})
        if p.ndim < 1:
            msg = f"{function}: {argument} must have an axis of tokens; got shape ()."
            raise ValueError(msg)


def quoted(value: Any) -> str:
    """Return a value as text for an error message, shortened if it is long."""
    if getattr(value, "ndim", 0):
        return f"an array of shape {tuple(value.shape)}"
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an int of thousands of digits
        return f"an int of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 60]} ... {text[-40:]}"


def check_word(function: str, argument: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise if `value` is not one of `words`, or not given."""
    if value is MISSING:
        remedy = f"It has no default: help(posref.{function}) says what each word means."
        msg = f"{function}: {argument} must be given, as one of {', '.join(map(repr, words))}. {remedy}"
        raise TypeError(msg)
    if not isinstance(value, str) or value not in words:
        msg = f"{function}: {argument} must be one of {', '.join(map(repr, words))}; got {quoted(value)}.{_meant(value, words)}"
        raise ValueError(msg)


def _meant(value: Any, words: tuple[str, ...]) -> str:
    """Return the word that was probably meant, as a sentence, or nothing."""
    from difflib import get_close_matches

    if not isinstance(value, str):
        return ""
    text = value.lower()
    near = [ALSO_CALLED[text]] if ALSO_CALLED.get(text) in words else get_close_matches(text, words, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _as_python(argument: str, value: Any) -> str:
    """Return a sentence that says how to make a 0-d array a Python number, or nothing."""
    scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not isinstance(value, int | float)
    return f" Pass a Python number: {argument.rsplit('.', maxsplit=1)[-1]}.item()." if scalar else ""


def as_number(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, so that products do not wrap or lose precision. Return all else unchanged."""
    return value.item() if type(value).__module__ == "numpy" and not getattr(value, "ndim", 1) else value


def check_integer(function: str, argument: str, value: Any, low: int, reason: str = "") -> int:
    """Return `value` as an int. Raise if it is not from `low` to 2**31 - 1."""
    value = as_number(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        remedy = _as_python(argument, value)
        msg = f"{function}: {argument} must be an int of at least {low}{reason}; got {quoted(value)}.{remedy}"
        raise ValueError(msg)
    if value > LARGEST_INTEGER:
        reason = "positions may have 32 bits"
        msg = f"{function}: {argument} must be an int of at most {LARGEST_INTEGER} ({reason}); got {quoted(value)}."
        raise ValueError(msg)
    return value


def check_integers(function: str, argument: str, values: Any, low: int) -> tuple[int, ...]:
    """Return `values` as a tuple. Raise unless they are a list or tuple of ints of at least `low`."""
    if isinstance(values, list | tuple):
        return tuple([check_integer(function, argument, value, low) for value in values])
    msg = f"{function}: {argument} must be a list or tuple of ints; got {quoted(values)}."
    raise ValueError(msg)


def check_flag(function: str, argument: str, value: Any) -> bool:
    """Return `value`. Raise if it is neither True nor False."""
    if value is True or value is False:
        return value
    value = as_number(value)
    if value is not True and value is not False:
        msg = f"{function}: {argument} must be True or False; got {quoted(value)}.{_as_python(argument, value)}"
        raise ValueError(msg)
    return value


def check_positive(function: str, argument: str, value: Any) -> float:
    """Return `value`. Raise if it is not a finite normal number above 0: powers of a subnormal number may overflow."""
    value = as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not SMALLEST_REAL <= value <= LARGEST_REAL:
        above = "of at least 2**-1022" if isinstance(value, float) and 0 < value < 1 else "above 0"
        msg = f"{function}: {argument} must be a finite number {above}; got {quoted(value)}.{_as_python(argument, value)}"
        raise ValueError(msg)
    return value


def check_finite(function: str, argument: str, value: Any) -> Any:
    """Return `value`. Raise if it is not a finite number."""
    value = as_number(value)
    if isinstance(value, bool) or not hasattr(value, "__float__") or not -LARGEST_REAL <= value <= LARGEST_REAL:
        msg = f"{function}: {argument} must be a finite number; got {quoted(value)}."
        raise ValueError(msg)
    return value


def check_coordinates(function: str, shape: tuple[int, ...], axes: int, rows: tuple[int, ...]) -> None:
    """Raise if the first axis of positions is not of size `axes`, or the other axes do not broadcast to `rows`."""
    if not shape or shape[0] != axes:
        remedy = " Move the last axis to the front." if len(shape) > 1 and shape[-1] == axes else ""
        msg = f"{function}: positions must have {axes} coordinates along their first axis; got shape {tuple(shape)}.{remedy}"
        raise ValueError(msg)
    check_rows(function, "positions", shape[1:], rows, (axes,))


def check_rows(
    function: str, argument: str, shape: tuple[int, ...], rows: tuple[int, ...], first: tuple[int, ...] = (), of: str = "x"
) -> None:  # fmt: skip
    """
    Raise if positions of `shape`, after the axes `first`, do not broadcast to `rows`, the leading axes of the array `of`.

    Shapes are aligned from the right. Positions with two or more axes must have as many axes as `rows`: (B, T) against
    (B, H, T) would broadcast silently when B equals H. The one exception is (T, 1) against (B, T, H) with H > 1, because its
    last axis shows what is meant.
    """
    if len(shape) == 1 and shape == rows[-1:]:  # the common case, three times as fast
        return
    shape, rows = tuple(shape), tuple(rows)
    if 1 < len(shape) < len(rows) and not shape[-1] == 1 < rows[-1]:
        example = (*first, shape[0], *(1,) * (len(rows) - len(shape)), *shape[1:])
        msg = (
            f"{function}: {argument} with more than one axis{' of tokens' if first else ''} must have all {len(rows)} of the "
            f"leading axes of {of}, {rows}; got {(*first, *shape)}. Insert axes of size 1, for instance reshape to {example}."
        )
        raise ValueError(msg)
    fits = len(shape) <= len(rows) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(rows), strict=False))
    if not fits:
        remedy = ""
        if len(shape) == 1 and shape[0] in rows[:-1]:
            remedy = f" If {of} is (B, T, H, D), reshape them to {(*first, shape[0], 1)}."
        elif argument == "cos" and rows and shape[-1:] > rows[-1:]:
            remedy = " Index a table that starts at position 0: cos[positions]."
        elif not rows:
            remedy = f" Pass {of} first, then {argument}."
        requirement = f"must broadcast to the leading axes of {of}, {rows}, without enlarging them"
        msg = f"{function}: {argument} {requirement}; got {(*first, *shape)}.{remedy}"
        raise ValueError(msg)


def check_rotated(function: str, rotary_dim: Any, width: int, argument: str = "x") -> int:
    """Return how many channels rotate: `width` for None. Raise if the number is odd or larger than `width`."""
    dim = width if rotary_dim is None else as_number(rotary_dim)
    if rotary_dim is None and (dim % 2 or dim < 2):
        msg = f"{function}: the last axis of {argument} must be even and at least 2, or rotary_dim given; got {width}."
        raise ValueError(msg)
    if isinstance(dim, bool) or not isinstance(dim, int) or dim % 2 or not 2 <= dim <= width:
        remedy = _as_python("rotary_dim", dim)
        msg = (
            f"{function}: rotary_dim must be even and at most {width} (the last axis of {argument}); got {quoted(dim)}.{remedy}"
        )
        raise ValueError(msg)
    return dim


def check_broadcast(function: str, names: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Raise if shapes `a` and `b` do not broadcast."""
    if any(n != m and 1 not in (n, m) for n, m in zip(reversed(a), reversed(b), strict=False)):
        msg = f"{function}: {names} must broadcast; got {tuple(a)} and {tuple(b)}."
        raise ValueError(msg)


def check_mask(function: str, argument: str, mask: Array, meaning: str, of: str, shape: tuple[int, ...]) -> None:
    """Raise if `mask` is not boolean, or does not broadcast with `of`. `meaning` says in the message where it is True."""
    if not namespace(mask).isdtype(mask.dtype, "bool"):
        msg = f"{function}: {argument} must be boolean, True where {meaning}; got {mask.dtype}."
        raise ValueError(msg)
    check_broadcast(function, f"{of} and {argument}", shape, mask.shape)
