"""Positions drawn at random in training, from draws that are given."""

from posref.arrays import index_dtype, namespace
from posref.checks import check_integer
from posref.positions.looking import first_where
from posref.types import ArrayOf, T


def randomised(draws: ArrayOf[T], /, *, length: int, maximum: int, check: bool = True) -> T:
    r"""
    Return the positions of randomised positional encodings: as many of a longer range as there are tokens, in rising order.

    .. math:: p_t = \text{the } t\text{-th smallest of } \{r_0, \dots, r_{T-1}\}, \qquad t = 0 \dots T - 1

    where r_0 ... r_{T-1} are the first T numbers drawn from 0 to N - 1 without replacement.

    Parameters
    ----------
    draws : array of integers, shape ``(*B, R)``
        r, distinct, in the order in which they were drawn. A permutation of 0 to N - 1 serves every `length`.
    length : int
        T, tokens in the sequence, at most R.
    maximum : int
        N, how many positions there are to draw from: more than any sequence that the model is to read has tokens.
    check : bool
        Whether to look at the values and refuse repeated ones and those outside 0 to N - 1. Compilers need False.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If the draws are not integers, are too few, repeat or lie outside the range.

    Source
    ------
    Ruoss et al., arXiv:2305.16843, section 3; google-deepmind/randomized_positional_encodings (commit e8c6474),
    models/positional_encodings.py, noisy_fixed_positional_encodings.

    Notes
    -----
    The authors' code counts from 0, as here. It draws one set for all sequences of a batch (draws without batch axes), in
    evaluation too. For relative encodings and ALiBi it draws distances, not positions: a key some number of tokens away is then
    at the same distance from every query, which no positions give.

    Examples
    --------
    >>> import numpy as np
    >>> randomised(np.asarray([5, 0, 3, 7, 1]), length=3, maximum=8).tolist()
    [0, 3, 5]
    """
    name = "randomised"
    xp = namespace(draws)
    if not xp.isdtype(draws.dtype, "integral") or draws.ndim < 1:
        msg = f"{name}: draws must be integers with an axis of draws; got {draws.dtype} {tuple(draws.shape)}."
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
            msg = f"{name}: draws must lie between 0 and {maximum - 1}, below maximum; got {outside}."
            raise ValueError(msg)
        again = first_where(p[..., 1:], p[..., 1:] == p[..., :-1], xp) if length > 1 else None
        if again is not None:
            msg = f"{name}: draws must be distinct (they are made without replacement); got {again} twice."
            raise ValueError(msg)
    return p
