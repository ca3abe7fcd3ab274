"""Assertions for anyone's tests: `assert_conforms` judges one call of any code, `watch` those that a model makes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from posref.conformance.checking.watching import Watch


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


def watch(
    target: Any, name: str | None = None, /, *, like: Callable[..., Any], claim: str | None = None, keep: int = 256,
    memory: int = 1 << 30,
) -> "Watch":  # fmt: skip
    """
    Record the calls of a function that your own code makes, and judge each when the block has ended.

    Parameters
    ----------
    target, name : str, or an object and a str
        The function: ``"my_model.rotary:apply_rotary"``, ``"my_model.rotary:Rotary.forward"``, or an object and the name of its
        method. It is replaced in that one place. A module that imported it before (``from x import f``) has a name of its
        own: give that one, the place where it is looked up when it is called.
    like : callable
        Called with the arguments of each call, those of a method with its object first. It says which question the call is:

        - ``(op, arrays, options)``, as `assert_conforms` takes them;
        - ``(op, arrays, options, pick)`` where the result is one of several, or is to be found elsewhere: a key of what the
          function returns, as ``0``, or a function of that;
        - a list of such questions, where one call answers several;
        - None for a call to leave out.
    claim : str, optional
        The accuracy class to hold the calls to, as in `assert_conforms`.
    keep, memory : int
        How many different calls are kept, and of how many bytes together. The first half of `keep` are the first ones, the
        others are drawn from all later ones. The rest are counted. A call that answers two questions counts as two.

    Returns
    -------
    context manager
        In the block it gives an object with

        - ``report()``, which calls were seen, of which shapes and positions, and the verdict on them, as text;
        - ``assert_conforms()``, which raises AssertionError unless a call was seen and every kept one passes;
        - ``calls`` and ``failed``: different calls, with `op`, `shapes`, `times`, `verdict` and `fault`;
        - ``save(directory)``, which writes the kept calls as a suite for ``posref check --suite``.

    Raises
    ------
    posref.conformance.PosrefError
        If there is no such function, or what `like` returns is no call of an operation: at once, where it is called.

    Notes
    -----
    Arguments are copied before the function runs, which may work in place, and results after it. Nothing is judged in the
    block. Calls of all threads and calls inside calls are seen; calls that raise are not, and the error passes through. Equal
    calls with equal results are judged once, and of those that fail alike the first has a diagnosis. Code compiled by PyTorch
    calls a watched function as it is, uncompiled. Inside ``jax.jit`` there are no values to see: watch the code without it.

    Examples
    --------
    A function that rotates queries and keys answers two questions:

    >>> import types
    >>> import numpy as np
    >>> import posref
    >>> def rotate(q, k, positions):
    ...     return tuple(posref.rope(x, positions, layout="half", base=10000.0) for x in (q, k))
    >>> model = types.SimpleNamespace(rotate=rotate)
    >>> def like(q, k, positions):
    ...     options = {"layout": "half", "base": 10000.0}
    ...     return [("rope", (q, positions), options, 0), ("rope", (k, positions), options, 1)]
    >>> with watch(model, "rotate", like=like) as seen:
    ...     _ = model.rotate(np.ones((2, 3, 8)), np.ones((1, 3, 8)), np.arange(3))
    >>> print(seen.report())
    SimpleNamespace.rotate: 2 calls seen, 2 different judged; all pass
      pass: rope in float64: x (2, 3, 8); positions (3,), 0 to 2; layout='half'; base=10000.0 (1 call)
      pass: rope in float64: x (1, 3, 8); positions (3,), 0 to 2; layout='half'; base=10000.0 (1 call)
    >>> seen.assert_conforms()
    """
    from posref.conformance.checking.watching import Watch

    return Watch(target, name, like, claim, keep, memory)
