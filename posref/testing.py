"""
For your tests: assertions on one call (`assert_conforms`), on the calls that code makes (`watch`), on a loaded model and on
eigenvectors of a graph, and random calls (`calls`).
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from posref.conformance.checks.watch import Watch
    from posref.conformance.loaded.model_report import ModelReport
    from posref.models.arguments import Config

__all__ = ["assert_conforms", "assert_laplacian_eigenvectors", "assert_model", "calls", "watch"]


def __dir__() -> list[str]:
    """Return only the public names, without what is imported."""
    return __all__


def assert_conforms(
    op: str, actual: Any, /, *arrays: Any, claim: str | None = None, rows: Literal["some"] | None = "some",
    batch_invariant: bool = False, **options: Any,
) -> None:  # fmt: skip
    """
    Raise AssertionError unless `actual` equals the result of an operation, within an accuracy class.

    The expected values come from posref's definition, in float64 with an error bound. Where that bound leaves the verdict open,
    they are proved with interval arithmetic. No stored vectors are needed, so any shapes, positions and options work.

    Parameters
    ----------
    op : str
        The operation: ``"rope"``, ``"alibi"``, ``"attention"``. ``posref list`` prints all of them.
    actual : array
        What your code returned, as an array of NumPy, PyTorch, JAX, CuPy or Dask, or a tuple if the operation has several
        results. Its dtype is the dtype of the call. With `batch_invariant`, your function, which is called with `arrays` and
        `options`.
    *arrays : array
        The positional arguments of posref's function of that name, with the values that your code received.
    claim : str, optional
        The accuracy class, such as ``"float64"``, ``"angle64"``, ``"angle32"`` or ``"low"``. By default
        float64 for float64, angle32 for float32, and low for half precision.
    rows : "some" or None
        With "some", results of more than 2**20 values are checked in some rows: the first, the last, rows beside tile borders,
        random rows and the rows that look farthest off. None checks all rows.
    batch_invariant : bool
        Also call your function with 1, 2, 3, 7, 64, 65 and 257 rows like those of the call, and with one of them alone. Each
        row must have the same bits, also beside rows of NaN or of other positions, with strides, and in gradients.
    **options
        The options of posref's function.

    Raises
    ------
    AssertionError
        With the worst value, its index, and the diagnosis of ``posref check``.
    posref.conformance.PosrefError
        If the operation, an argument or `claim` does not fit, or the class allows no verdict on this call.
    ValueError
        If `rows` is neither "some" nor None.
    TypeError
        If `batch_invariant` is True and `actual` is no function.

    Examples
    --------
    >>> import numpy as np
    >>> import posref
    >>> x, positions = np.ones((3, 4), dtype=np.float32), np.asarray([0, 5, 9])
    >>> options = {"layout": "half", "base": 10000.0}
    >>> assert_conforms("rope", posref.rope(x, positions, **options), x, positions, **options)

    With the result of another layout the error is::

        AssertionError: rope in float32 is not within angle32:
          out[1, 2]: got 0.948771119, expected -0.675262089; off by 1.6, 4.8e-07 is allowed (12 of 12 values judged)
          diagnosis: Matches the reference if layout is always 'interleaved'
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    from posref.conformance.checks.assertion import fault_of  # NumPy is loaded at the first assertion

    if rows not in ("some", None):
        msg = f'assert_conforms: rows must be "some", or None for all; got {rows!r}.'
        raise ValueError(msg)
    function = actual
    if batch_invariant:
        if not callable(function):
            msg = f"assert_conforms: actual must be a function if batch_invariant is True; got {type(function).__name__}."
            raise TypeError(msg)
        actual = function(*arrays, **options)
    faults = [fault_of(op, actual, arrays, options, claim, everything=rows is None)]
    if batch_invariant:
        from posref.conformance.checks.batch_invariance import batch_fault

        faults.append(batch_fault(op, function, actual, arrays, options))
    if any(faults):
        raise AssertionError("\n".join(filter(None, faults)))


def calls(op: str, /, *, dtype: str = "float32") -> "SearchStrategy[tuple[tuple[Any, ...], dict[str, Any]]]":
    """
    Return a strategy of hypothesis that draws calls of an operation: arrays and options, for a property test of your code.

    Every option, shape and position that the operation allows can come, if `assert_conforms` can judge the result. Draws shrink
    to short calls.

    Parameters
    ----------
    op : str
        The operation: ``"rope"``, ``"alibi"``, ``"attention"``. ``posref list`` prints all of them.
    dtype : {"float32", "float64", "float16", "bfloat16"}
        The dtype of real arrays. Numbers for bfloat16 come in float32 arrays, and bfloat16 can represent them.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        It draws ``(arrays, options)``: NumPy arrays, and keyword arguments. ``posref.rope(*arrays, **options)`` is such a call.

    Raises
    ------
    posref.conformance.PosrefError
        If there is no such operation or dtype, or hypothesis is not installed.

    Notes
    -----
    If your code lacks an option, filter: ``calls("rope").filter(lambda call: call[1]["layout"] == "half")``.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> import posref
    >>> @settings(max_examples=5, database=None, deadline=None)
    ... @given(calls("alibi_slopes"))
    ... def test_slopes(call):
    ...     arrays, options = call
    ...     assert_conforms("alibi_slopes", posref.alibi_slopes(*arrays, **options), *arrays, **options)
    >>> test_slopes()
    """
    from posref.conformance.commands.console import needs

    needs("fuzz", hypothesis="hypothesis")
    from posref.conformance.fuzzing.strategies import arguments

    return arguments(op, dtype)


def assert_model(
    model: Any, config: "Config | None" = None, *, layers: Iterable[int] | None = None, functions: Iterable[str] = ()
) -> "ModelReport":
    """
    Raise AssertionError unless a loaded PyTorch model does what its config.json says of positions.

    It reads the buffers of frequencies by their names. Then it makes one forward pass of 53 tokens at far positions, and judges
    what each layer rotates and how it attends: which query sees which key, scale, softcap, sinks and bias.

    Parameters
    ----------
    model : torch.nn.Module
        The loaded model, of transformers or any other whose forward takes token numbers first.
    config : mapping, object with ``to_dict()``, or path, optional
        The file. Give the config.json that was there before the model was loaded: ``model.config`` agrees with a model that
        was changed together with it. By default ``model.config``.
    layers : iterable of int, optional
        Judge only these layers, from 0.
    functions : iterable of str, optional
        Names of functions that rotate queries and keys, in the modules of the model's code, beside those named as in
        transformers (``apply_rotary_pos_emb``). They take queries and keys first, and return them.

    Returns
    -------
    ModelReport
        What was judged in which layers, and what was not: ``print(report)``. It has ``judged``, ``not_judged`` and
        ``to_json()``.

    Raises
    ------
    AssertionError
        With the report: what differs, in which layers, and which nearby options fit.
    posref.conformance.PosrefError
        If `model` is no PyTorch module, the file cannot be read, or nothing could be judged.

    Notes
    -----
    Of a model on the meta device only the dtype of buffers is known. A sharded model is judged on each rank. Buffers and
    attributes that the pass changes are restored. In bfloat16 and float16, attention is called again with float32 copies of its
    tensors, and judged there. A window longer than the pass is judged in a second pass, in which the file and the model's
    configuration have a shorter one.

    Examples
    --------
    In a test::

        model = AutoModelForCausalLM.from_pretrained(folder)
        posref.testing.assert_model(model, folder / "config.json")

    With frequencies that lost their scaling the error is::

        AssertionError: LlamaForCausalLM (llama), float32, attention: sdpa
        ...
        DIFFERS: text, layers 0-1: rotation: query: unscaled frequencies: the scaling of the file is missing ...
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    from posref.conformance.errors import TargetError
    from posref.conformance.loaded.inspection import inspect_model

    report = inspect_model(model, config, layers, functions)
    if report.differences:
        raise AssertionError(str(report))
    if not report.judged:
        msg = f"assert_model: {report}"
        raise TargetError(msg)
    return report


def assert_laplacian_eigenvectors(vectors: Any, adjacency: Any, /, *, dropped: int = 1, gap: float | None = None) -> None:
    r"""
    Raise AssertionError unless vectors are eigenvectors of a graph's Laplacian for its smallest eigenvalues, in any basis.

    Three things must be true of X, the vectors, and L, the Laplacian of `posref.laplacian_eigenvalues`:

    .. math:: X^T X = I, \qquad L X = X \, \mathrm{diag}(\lambda), \qquad X_\lambda X_\lambda^T = \Pi_\lambda

    where :math:`\lambda` are the eigenvalues in increasing order after the first `dropped`, :math:`X_\lambda` the vectors of
    one eigenvalue, and :math:`\Pi_\lambda` the projector onto its whole eigenspace. If the first or the last vectors do not
    have the whole space, they must lie in it. So any sign and any basis of an eigenspace passes, and of several components any
    choice.

    Parameters
    ----------
    vectors : array, real floating, shape ``(N, k)``
        X, one column for each eigenvalue. Its dtype decides the tolerance.
    adjacency : array, shape ``(N, N)``
        Symmetric, with weights of at least 0. Edges of a node to itself do not count.
    dropped : int
        How many eigenvectors come before the first column: 1 in the paper, PyTorch Geometric and DGL.
    gap : float, optional
        Eigenvalues that are no farther apart have one space. By default the root of the tolerance of :math:`X^T X`.

    Raises
    ------
    AssertionError
        With everything that is wrong, and what the vectors would be right for, such as another Laplacian.
    posref.conformance.PosrefError
        If `adjacency`, `dropped` or `gap` does not fit.

    Notes
    -----
    The tolerance is 8 N eps, the backward error of a stable solver: 5e-6 for 6 nodes in float32. PyTorch Geometric's default,
    ``AddLaplacianEigenvectorPE`` without ``is_undirected=True``, fails on a ring of six nodes: its solver does not return
    orthogonal vectors.

    Examples
    --------
    >>> import numpy as np
    >>> ring = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    >>> _, vectors = np.linalg.eigh(np.eye(6) - ring / 2)
    >>> assert_laplacian_eigenvectors(-vectors[:, 1:4], ring)

    With the first vectors, ``vectors[:, :3]``, the error is::

        AssertionError: these are not the eigenvectors of the graph's Laplacian:
          vector 0 has eigenvalue 0; 0.5 comes in its place
          vectors 0 to 1 do not span the eigenspace of 0.5, which has dimension 2: off by 1, 8.2e-14 is allowed
          ...
          perhaps 0 eigenvectors were dropped, not 1
    """
    __tracebackhide__ = True
    from posref.conformance.checks.eigenvectors import eigenvector_faults

    faults = eigenvector_faults(vectors, adjacency, dropped, gap)
    if faults:
        raise AssertionError("\n  ".join(["these are not the eigenvectors of the graph's Laplacian:", *faults]))


def watch(
    target: Any, name: str | None = None, /, *, like: Callable[..., Any], claim: str | None = None, keep: int = 256,
    memory: int = 1 << 30,
) -> "Watch":  # fmt: skip
    """
    Record the calls that your code makes of a function in a ``with`` block; check them when you read the results.

    Parameters
    ----------
    target, name : str, or an object and a str
        The function: ``"my_model.rotary:apply_rotary"``, ``"my_model.rotary:Rotary.forward"``, or an object and the name of its
        method. Only that one name is replaced. If another module imported the function before (``from x import f``), name it
        there: where the caller looks it up.
    like : callable
        Called with the arguments of each call; for a method, the object comes first. It says what to compare with, and returns

        - ``(op, arrays, options)``, as for `assert_conforms`;
        - ``(op, arrays, options, pick)`` if the result is only a part of what the function returns: `pick` is a key, such as
          ``0``, or a function of the returned value;
        - ``("unchanged", [x], {})`` where the result must be `x`, in every bit: a layer that does not rotate;
        - a list of such tuples, if one call has several results to compare;
        - None to skip the call.
    claim : str, optional
        The accuracy class, as in `assert_conforms`.
    keep, memory : int
        The number of different calls to keep, and their size in bytes. The first half of `keep` are the first calls, the other
        half a random sample of the later ones. All other calls are only counted. A call with two results to compare counts as
        two.

    Returns
    -------
    context manager
        ``with watch(...) as seen`` binds an object with

        - ``report()``: the calls with their shapes and positions, and the verdict on each, as text;
        - ``assert_conforms()``: raises AssertionError unless a call was seen and every kept call passes;
        - ``calls`` and ``failed``: the different calls, with `op`, `shapes`, `times`, `verdict` and `fault`;
        - ``save(directory)``: writes the kept calls as a suite for ``posref check --suite``.

    Raises
    ------
    posref.conformance.PosrefError
        If there is no such function, or at the call itself if `like` returns something else than a call of an operation.

    Notes
    -----
    Arguments are copied before the function runs, because it may work in place. Results are copied after it. No check runs
    inside the block. Calls from all threads and nested calls are recorded. A call that raises is not recorded, and its error
    passes through. Equal calls with equal results are checked once. Of calls that fail alike, only the first has a diagnosis.
    Code compiled by PyTorch calls a watched function uncompiled. Inside ``jax.jit`` there are no values to record: watch the
    code without it.

    Examples
    --------
    A function that rotates queries and keys has two results to compare:

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
    from posref.conformance.checks.watch import Watch

    return Watch(target, name, like, claim, keep, memory)
