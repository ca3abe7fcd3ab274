"""Positions for training with randomised positional encodings, from random draws that you pass."""

from posref.core.arrays import index_dtype, library
from posref.core.checks import check_integer
from posref.positions.value_checks import first_where
from posref.types import ArrayOf, T


def randomised(draws: ArrayOf[T], /, *, length: int, maximum: int, check: bool = True) -> T:
    r"""
    Return the positions of randomised positional encodings: T positions drawn from a longer range, in increasing order.

    .. math:: p_t = \text{the } t\text{-th smallest of } \{r_0, \dots, r_{T-1}\}, \qquad t = 0 \dots T - 1

    Here r_0 ... r_{T-1} are the first T numbers drawn from 0 to N - 1 without replacement. The smallest has t = 0.

    Parameters
    ----------
    draws : array of integers, shape ``(*B, R)``
        r, distinct, in the order in which they were drawn. Only the first T are used, so a permutation of 0 to N - 1 works for
        every `length` up to N.
    length : int
        T, the number of tokens in the sequence, at most R.
    maximum : int
        N, the number of positions to draw from. Make it larger than any sequence that the model will read.
    check : bool
        Check that the first T draws are distinct and from 0 to N - 1. Pass False under ``jax.jit`` and ``torch.compile``, where
        array values cannot be read.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If the draws are not integers, there are fewer than `length`, or `length` or `maximum` is not an int of at least 0. With
        `check`, also if one of the first T draws repeats or is outside the range.

    Source
    ------
    Ruoss et al., arXiv:2305.16843, section 3; google-deepmind/randomized_positional_encodings (commit e8c6474),
    models/positional_encodings.py, noisy_fixed_positional_encodings.

    Notes
    -----
    The authors' code counts from 0, as here. It draws once for all sequences of a batch (draws without batch axes), also in
    evaluation. For relative encodings and ALiBi it draws distances instead of positions. All keys that are the same number of
    tokens from their query then have the same distance. This function cannot give that.

    Examples
    --------
    >>> import numpy as np
    >>> randomised(np.asarray([5, 0, 3, 7, 1]), length=3, maximum=8).tolist()
    [0, 3, 5]
    """
    name = "randomised"
    xp = library(name, draws=draws)
    if not xp.isdtype(draws.dtype, "integral") or draws.ndim < 1:
        msg = f"{name}: draws must be integers with at least one axis; got {draws.dtype} of shape {tuple(draws.shape)}."
        raise ValueError(msg)
    length, maximum = check_integer(name, "length", length, 0), check_integer(name, "maximum", maximum, 0)
    if length > draws.shape[-1]:
        msg = f"{name}: length must be at most {draws.shape[-1]}, the number of draws; got {length}. Draw more."
        raise ValueError(msg)
    first = xp.astype(draws[..., :length], index_dtype(draws))
    p = xp.sort(first, axis=-1) if length > 1 else first
    if check:
        outside = first_where(p, (p < 0) | (p >= maximum), xp)
        if outside is not None:
            msg = f"{name}: draws must be at least 0 and below maximum ({maximum}); got {outside}."
            raise ValueError(msg)
        again = first_where(p[..., 1:], p[..., 1:] == p[..., :-1], xp) if length > 1 else None
        if again is not None:
            msg = f"{name}: draws must be distinct (draw without replacement); got {again} twice."
            raise ValueError(msg)
    return p
