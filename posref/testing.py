"""Assertions for anyone's tests: `assert_conforms` judges one call of any code."""

from typing import Any, Literal


def assert_conforms(
    op: str, actual: Any, /, *arrays: Any, claim: str | None = None, rows: Literal["some"] | None = "some", **options: Any
) -> None:
    """
    Raise AssertionError unless `actual` is what an operation gives, as accurately as it claims.

    The truth is the definition's, in float64 with a bound of its own, and proved by balls where that does not decide. Nothing
    is stored: any shapes, positions and options may be asked.

    Parameters
    ----------
    op : str
        The operation: ``"rope"``, ``"alibi"``, ``"attention"``; ``posref list`` prints them all.
    actual : array
        What your code returned, as an array of NumPy, PyTorch, JAX, CuPy or Dask; a tuple where there are several results.
        Its dtype is the dtype of the call.
    *arrays : array
        The arguments that the reference takes by position, with the values that your code was given.
    claim : str, optional
        The accuracy class to hold it to: ``"float64"``, ``"angle64"``, ``"angle32"`` or ``"low"``. By default
        float64 for float64, angle32 for float32, and low for half precision.
    rows : "some" or None
        Of results with more than 2**20 values some rows are judged: the first, the last, those beside borders of tiles, drawn
        ones and those that look farthest off. None judges all.
    **options
        The options of the reference.

    Raises
    ------
    AssertionError
        With the worst value, where it is, and the diagnosis of ``posref check``.
    posref.conformance.PosrefError
        If the call is none of the operation, or nothing can be said of it.

    Examples
    --------
    >>> import numpy as np
    >>> import posref
    >>> x, positions = np.ones((3, 4), dtype=np.float32), np.asarray([0, 5, 9])
    >>> options = {"layout": "half", "base": 10000.0}
    >>> assert_conforms("rope", posref.rope(x, positions, **options), x, positions, **options)

    With the result of another layout it ends so::

        AssertionError: rope in float32 is not within angle32:
          out[1, 2]: got 0.948771119, expected -0.675262089; off by 1.6, 4.8e-07 is allowed (12 of 12 values judged)
          diagnosis: your output equals the definition, within angle32, if layout is 'interleaved' whatever is asked for
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    from posref.conformance.checking.conforming import fault_of  # NumPy is loaded when something is asserted

    if rows not in ("some", None):
        msg = f'assert_conforms: rows must be "some" or None, for all; got {rows!r}.'
        raise ValueError(msg)
    fault = fault_of(op, actual, arrays, options, claim, everything=rows is None)
    if fault is not None:
        raise AssertionError(fault)
