"""Camera transforms: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, cases_of, form_case, gradient, reals
from .tools.deviation import Function, Real, after, always, around, deviations_of, narrowed, option
from .tools.hints import BRANCH, KEEP_FLOAT32

OP = "camera_transform"
USUAL: dict[str, Any] = {"role": "query", "blocks": 2}
SIZES: dict[str, Any] = {"n": 2, "E": 4}  # half of the channels, as in PRoPE and UCPE
KERNEL: tuple[dict[str, Any], ...] = tuple({"role": role, "blocks": 2} for role in ("query", "key_value", "output"))

_cases = cases_of(OP)


def _inputs(
    name: str, shape: tuple[int, ...], lead: tuple[int, ...] | None = None, n: int = 4, bits: int = 8, far: float = 1.0
) -> dict[str, Any]:
    """Return x of this shape, with matrices and what stands for their inverses: any numbers, in a camera's last row too."""
    lead = shape[:-1] if lead is None else lead
    scale = np.where(np.arange(n) == n - 1, far, 1.0)  # the last column has translations
    made = (reals(f"{OP} {name} {of}", *lead, n, n, bits=bits) / 2 * scale for of in ("matrices", "inverses"))
    return {"x": reals(f"{OP} {name}", *shape, bits=bits), **dict(zip(("matrices", "inverses"), made, strict=True))}


def _case(
    name: str, shape: tuple[int, ...], role: str, blocks: int, comment: str = "", *,
    lead: tuple[int, ...] | None = None, n: int = 4, bits: int = 8, far: float = 1.0, **rest: Any,
) -> Case:  # fmt: skip
    inputs = _inputs(name, shape, lead, n, bits, far) | rest.pop("given", {})
    return _cases(name, {"role": role, "blocks": blocks}, inputs, comment, **rest)


def _form(name: str, shape: tuple[int, ...], role: str, comment: str = "", form: str = "") -> Case:
    return form_case(OP, name, _inputs(name, shape), {"role": role, "blocks": 1}, comment, form=form)


def _gradient(name: str, shape: tuple[int, ...], role: str, blocks: int, view: str = "") -> Case:
    """Return a case that asks for the gradients in what this role multiplies."""
    wrt = "x inverses" if role == "key_value" else "x matrices"
    inputs = _inputs(f"gradient {name}", shape, n=2)
    return gradient(OP, name, inputs, {"out": shape}, wrt=wrt, view=view, role=role, blocks=blocks)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("query/small", (3, 8), "query", 2, tier="smoke"),
        _case("query/rows", (2, 3, 4, 9), "query", 1, "heads share matrices", lead=(2, 1, 4)),
        _case("query/far", (3, 16), "query", 2, far=512.0),
        _case("query/sana", (2, 5, 112), "query", 14, "SANA-WM: half of 112 channels; fewer tokens"),
        _case("key-value/far", (3, 8), "key_value", 2, far=512.0),
        _case("key-value/64", (3, 64), "key_value", 8, "PRoPE: half of 64 channels"),
        _case("output/three", (5, 7), "output", 2, "blocks of three channels, as of rotations", n=3),
        _case("query/one-channel", (4, 3), "query", 2, "blocks of one channel", n=1),
        _case("empty/no-head-output", (1, 0, 2, 9), "output", 1),
        _form("strided-output", (2, 3, 5), "output", form="non-contiguous"),
        _form("batch-one", (1, 5, 6), "query"),
        _form("length-one", (3, 1, 4), "key_value"),
        _form("length-one-alone", (1, 4), "output"),
        _case("refused/blocks", (3, 6), "query", 2, "eight channels of six", kind="reject"),
        _case("refused/tokens", (3, 8), "query", 2, "matrices of two tokens for three", lead=(2,), kind="reject"),
        _case("refused/role", (3, 8), "value", 2, "no such role", kind="reject"),
        _gradient("query", (2, 5), "query", 2),
        _gradient("key-value", (2, 2, 4), "key_value", 2),
        _gradient("key-value-rest", (3, 5), "key_value", 2),
        _gradient("output", (3, 3), "output", 1),
        _gradient("strided", (2, 2, 2), "query", 1, view="non-contiguous"),
    )


def _interleaved(function: Function) -> Function:
    """Return a change that takes channels i, i + blocks, i + 2 blocks, ... for block i."""

    def moved(x: Real, blocks: int, n: int, back: bool) -> Real:
        first, rest = x[..., : blocks * n], x[..., blocks * n :]
        sizes = (blocks, n) if back else (n, blocks)
        first = np.swapaxes(first.reshape(*x.shape[:-1], *sizes), -1, -2).reshape(first.shape)
        return np.concatenate([first, rest], axis=-1)

    def deviating(x: Real, matrices: Real, inverses: Real, /, *, blocks: int, **options: Any) -> Real:
        n = matrices.shape[-1]
        return moved(function(moved(x, blocks, n, False), matrices, inverses, blocks=blocks, **options), blocks, n, True)

    return deviating


@around
def _all_blocks(function: Function, x: Real, matrices: Real, inverses: Real, /, *, blocks: int, **options: Any) -> Real:
    return function(x, matrices, inverses, blocks=x.shape[-1] // matrices.shape[-1], **options)


@around
def _last_blocks(function: Function, x: Real, matrices: Real, inverses: Real, /, *, blocks: int, **options: Any) -> Real:
    by = blocks * matrices.shape[-1] - x.shape[-1]
    return np.roll(function(np.roll(x, by, axis=-1), matrices, inverses, blocks=blocks, **options), -by, axis=-1)


def _first(axes: int) -> Any:
    """Return a change that gives all indices of an axis of the matrices those of the first."""
    return lambda f: (
        lambda role, *of: f(
            role, *(np.broadcast_to(np.take(m, [0], axis=-axes), m.shape) if m.ndim >= axes and m.size else m for m in of)
        )
    )


_deviation = deviations_of(OP)
_chosen = deviations_of("matrix_of")
ROLES = "Queries are multiplied by the transpose, keys and values by the inverse, the output by the matrix itself."
BLOCKS = "A block is n neighbouring channels, and the first blocks count: compare the reshape, (blocks, n)."

DEVIATIONS = (
    _deviation("camera-always-query", "keys, values and the output are multiplied as queries are",
               option(role=always("query")), hint=BRANCH),
    _deviation("camera-always-output", "queries, keys and values are multiplied as the output is",
               option(role=always("output")), hint=BRANCH),
    _deviation("camera-interleaved", "a block has every few channels, not neighbours", _interleaved, hint=BLOCKS),
    _deviation("camera-all-channels", "all channels are multiplied", _all_blocks, hint=BLOCKS),
    _deviation("camera-last-channels", "the last channels are multiplied, not the first", _last_blocks, hint=BLOCKS),
    _chosen("camera-transpose", "the matrix is transposed where it should not be, or the reverse",
            after(lambda out, *a: np.swapaxes(out, -1, -2)), hint=ROLES),
    _chosen("camera-inverse-for-matrix", "matrix and inverse stand in each other's place",
            lambda f: lambda role, matrices, inverses, /: f(role, inverses, matrices), hint=ROLES),
    _chosen("camera-rotation-alone", "translations are left out",
            after(lambda out, role, *a: np.where(np.arange(out.shape[-1] ** 2).reshape(out.shape[-1], -1) % out.shape[-1]
                                                 == out.shape[-1] - 1, 0.0, out) if role != "query" else out),
            hint="Keep the last column of the matrices: multiply by all of it."),
    _chosen("camera-matrices-bfloat16", "matrices are held in bfloat16",
            lambda f: lambda role, *of: f(role, *(narrowed("bfloat16")(m) for m in of)), hint=KEEP_FLOAT32),
    _chosen("camera-first-token", "every token has the first token's matrix", _first(3),
            hint="Each token has a matrix: that of its image, or of its ray."),
    _chosen("camera-first-row", "every row of the batch has the matrices of the first", _first(5),
            hint="Each row of the batch has cameras of its own."),
)  # fmt: skip
