"""Writing keys or values into a paged cache. Source: Kwon et al., arXiv:2309.06180, section 4.3."""

from posref.core.arrays import Beside, beside, cast, index_dtype, library
from posref.core.arrays import rows as rows_of
from posref.core.checks import check_flag, check_real
from posref.spec import Axes, Flag, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Writing into a key-value cache",
    idea=(
        "A cache keeps the keys and values of earlier tokens in pages of a fixed number of slots. Each new token has a slot "
        "number; its row is written there, and everything else stays as it is. Padding has slot -1 and is not written."
    ),
    tool=True,
    family="attention",
    source="arXiv:2309.06180, section 4.3",
    models=("vLLM",),
    domains={"padded": Flag()},
    arrays={
        "cache": Axes("N B H D"),
        "rows": Axes("T+spare H D"),
        "slots": Axes("T", "integer", low="-1", high="N*B-1", distinct=True),
    },
    result="=cache",
    requires=("padded or spare == 0",),
    read={"vLLM": "vllm 0.33.0, csrc/cache_kernels.cu:854-863"},
)
def write_cache(cache: ArrayOf[T], rows: ArrayOf[T], slots: ArrayOf[T], /, *, padded: bool = False) -> T:
    r"""
    Return `cache` with the row of each token written into its slot.

    .. math:: C'_{n, b} = \begin{cases} x_t & s_t = n B + b \text{ for a token } t \\ C_{n, b} & \text{otherwise} \end{cases}

    C is the cache, with N pages of B slots. :math:`x_t` and :math:`s_t` are the row and the slot of token t. Slot s is place
    :math:`s \bmod B` of page :math:`\lfloor s / B \rfloor`.

    Parameters
    ----------
    cache : array, real floating, shape ``(N, B, H, D)``
        C, the keys or the values of H heads in N pages of B slots. A contiguous cache of (batch, length, H, D) has pages as
        long as a sequence: slot b * length + position. For pages of (H, B, D) pass a view with these axes exchanged.
    rows : array, real floating, shape ``(T, H, D)``
        x, the new keys, after their rotation, or the new values; more than T if `padded`. For MLA H is
        1, and a row is the latent vector and the rotated part, one after the other.
    slots : array of integers, shape ``(T,)``
        s, from -1 to N * B - 1. A token with slot -1 is padding and is not written. The result is unspecified if two tokens
        have the same slot, or a slot is outside; `posref.positions.require_slots` raises for both.
    padded : bool
        True: there may be more rows than slots, and those beyond are not written, as in vLLM, which pads rows for CUDA graphs.
        False: a slot for each row.

    Returns
    -------
    array, shape ``(N, B, H, D)``
        A new array, in the dtype of `cache`. Rows are rounded to it; with the same dtype they are copied bit for bit.

    Raises
    ------
    ValueError
        If `cache` or `rows` is not real floating, their heads or channels differ, or `slots` are not T integers.

    Notes
    -----
    Kernels write in place. To check one, give it a copy of `cache` and return the copy. Everything that it does not write must
    keep its bits, which is checked too. Rows of a cache in 8 bits are those of `to_float8`.

    Fused kernels differ in the queries of tokens without a slot: some rotate them all the same, and some leave them as they
    were. The cache is the same. In the second case compare queries with ``xp.where(slots[:, None, None] >= 0, rotated, q)``.

    This definition compares all slots with all tokens: it takes N * B * T comparisons, and is no cache to run a model with.

    Examples
    --------
    >>> import numpy as np
    >>> cache, rows = np.zeros((2, 2, 1, 1)), np.asarray([[[5.0]], [[6.0]], [[7.0]]])
    >>> write_cache(cache, rows, np.asarray([3, -1, 0])).reshape(-1).tolist()
    [7.0, 0.0, 0.0, 5.0]
    """
    name = "write_cache"
    xp = library(name, cache=cache, rows=rows, slots=slots)
    check_real(name, cache=cache, rows=rows)
    if cache.ndim != 4 or rows.ndim != 3 or tuple(cache.shape[2:]) != tuple(rows.shape[1:]):
        msg = (
            f"{name}: cache must be (pages, slots, heads, channels) and rows (tokens, heads, channels), with the same heads "
            f"and channels; got {tuple(cache.shape)} and {tuple(rows.shape)}."
        )
        raise ValueError(msg)
    few = check_flag(name, "padded", padded) and slots.ndim == 1 and slots.shape[0] < rows.shape[0]
    if not xp.isdtype(slots.dtype, "integral") or not (few or tuple(slots.shape) == (rows.shape[0],)):
        most = "at most one" if padded else "one"
        msg = (
            f"{name}: slots must be integers, {most} for each of the {rows.shape[0]} rows; got {slots.dtype} "
            f"{tuple(slots.shape)}." + " For fewer slots pass padded=True." * (slots.ndim == 1 and not padded)
        )
        raise ValueError(msg)
    rows = rows[: slots.shape[0], ...]
    pages, size, *_ = cache.shape
    if 0 in cache.shape or 0 in rows.shape:
        return cast(cache, cache.dtype)
    dtype = index_dtype(slots)
    places, tokens = (Beside(slots).arange(0, stop, 1, dtype=dtype) for stop in (pages * size, rows.shape[0]))
    chosen, zero = cast(slots, dtype), beside(0, slots, dtype)
    again = xp.any((chosen[:, None] == chosen[None, :]) & (tokens[:, None] < tokens[None, :]), axis=-1)
    here = places[:, None] == xp.where(again, zero - 1, chosen)[None, :]
    token = xp.cumulative_sum(xp.where(here, tokens[None, :] + 1, zero), axis=-1)[:, -1]  # 0 where none is written
    written = xp.reshape(cast(rows_of(rows, xp.maximum(token - 1, zero)), cache.dtype), cache.shape)
    return xp.where(xp.reshape(token, (pages, size, 1, 1)) > 0, written, cache)
