"""
One call of every definition on small, asymmetric inputs, written once for arrays of any library, balls and bounds.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from conftest import Library

import posref
from posref.backends.bounds import bounds
from posref.scaling import (
    DynamicNTK,
    DynamicYaRN,
    Linear,
    Llama3,
    LongRoPE,
    NTKAlpha,
    NTKAware,
    NTKFixed,
    NTKMixed,
    Proportional,
    YaRN,
    YaRNByTurns,
)  # fmt: skip

RNG = np.random.default_rng(7)


def reals(*shape: int) -> np.ndarray:
    """Return normal numbers that every dtype down to bfloat16 holds exactly."""
    return np.round(RNG.standard_normal(shape) * 32) / 32


class Call(NamedTuple):
    """A call: inputs by name (reals float64, integers int64), and a function of arrays and the dtype of results."""

    inputs: tuple[np.ndarray, ...]
    function: Callable[..., Any]
    takes_dtype: bool = False


PLACES = np.asarray([0, 1, 2, 7, 255, 257, 4097, 131071], dtype=np.int64)
Q, K = np.asarray([3, 9, 400], dtype=np.int64), np.asarray([0, 1, 3, 5, 8, 20, 399], dtype=np.int64)
FREQUENCIES = 10000.0 ** (-np.arange(3) / 3)
X = reals(2, 3, 8, 12)
XPOS: dict[str, Any] = {"layout": "interleaved", "base": 10000.0, "centre": 4096}
LEARNED = np.round(np.cos(np.arange(3 * 3 * 5.0)) * 32).reshape(3, 3, 5) / 32  # axes, heads, pairs
AXES = np.stack([PLACES, PLACES[::-1], PLACES // 3])
CELLS = np.asarray([[0, 0, 1, 2, 5, 3, 7, 19], [0, 4, 1, 0, 2, 11, 6, 13]], dtype=np.int64)


def _rope(**options: Any) -> Call:
    options = {"layout": "half", "base": 10000.0} | options
    return Call((X, PLACES), lambda x, p, dtype: posref.rope(x, p, **options))


def _shaw(order: str, left: int, right: int) -> dict[str, Call]:
    options = {"left": left, "right": right, "order": order}
    rows = left + right + 1
    return {
        f"shaw_scores {order}": Call(
            (reals(2, 3, 5), reals(2, 7, 5), reals(rows, 5), Q, K),
            lambda q, k, t, p, r, dtype: posref.shaw_scores(q, k, t, p, r, **options),
        ),
        f"shaw_values {order}": Call(
            (np.abs(reals(2, 3, 7)), reals(2, 7, 5), reals(rows, 5), Q, K),
            lambda w, v, t, p, r, dtype: posref.shaw_values(w, v, t, p, r, **options),
        ),
    }


def _attention(
    *arrays: np.ndarray, mask: np.ndarray | None = None, bias: bool = False, sinks: bool = False, scale: float | None = None
) -> Call:
    def function(q: Any, k: Any, v: Any, *rest: Any, dtype: Any) -> Any:
        left = list(rest)
        options = {name: left.pop(0) for name, there in (("bias", bias), ("sinks", sinks)) if there}
        options |= {"mask": left.pop(0)} if mask is not None else {}
        return posref.attention(q, k, v, scale=scale, **options)

    return Call((*arrays, *(() if mask is None else (mask,))), function)


EXTENSIONS: dict[str, dict[str, Any]] = {
    "rerope": {"window": 4},
    "leaky_rerope": {"window": 4, "factor": 3},
    "self_extend": {"group": 3, "window": 4, "shift": "exact"},
    "dual_chunk": {"chunk_size": 9, "local_size": 3},
    "streaming_llm": {"sinks": 2, "window": 3, "counting": "without_query"},
}


def _extension(op: str) -> dict[str, Call]:
    options, real = EXTENSIONS[op], op in ("leaky_rerope", "self_extend")
    apart, scores = getattr(posref, f"{op}_distances"), getattr(posref, op)
    rotation = {"layout": "interleaved", "base": 500.0, "rotary_dim": 4, "scaling": YaRN(4.0, 64)}
    return {
        f"{op}_distances": Call((Q, K), lambda q, k, dtype: apart(q, k, **options, **({"dtype": dtype} if real else {})), real),
        op: Call(
            (reals(2, 4, 3, 5), reals(2, 2, 7, 5), Q, K), lambda q, k, m, n, dtype: scores(q, k, m, n, **options, **rotation)
        ),
    }


MASK = Q[:, None] >= K
MASK[0] = False
TABLE = reals(8, 5)

CALLS: dict[str, Call] = {
    **{
        f"sinusoidal {layout} {endpoint}": Call(
            (PLACES,),
            lambda p, dtype, layout=layout, endpoint=endpoint: posref.sinusoidal(
                p, 10, layout=layout, endpoint=endpoint, base=5000.0, dtype=dtype
            ),
            takes_dtype=True,
        )
        for layout in ("interleaved", "sin_cos", "cos_sin")
        for endpoint in (False, True)
    },
    "learned": Call((PLACES[:4], reals(10, 5)), lambda p, t, dtype: posref.learned(p, t, offset=2)),
    "rope_table": Call(
        (PLACES.reshape(2, 4), FREQUENCIES),
        lambda p, f, dtype: posref.rope_table(p, f, attention_factor=1.25, dtype=dtype),
        takes_dtype=True,
    ),
    **{f"rope {layout}": _rope(layout=layout) for layout in ("half", "interleaved", "interleaved_to_half")},
    **{
        f"rope {layout} inverse partial": _rope(layout=layout, rotary_dim=6, inverse=True)
        for layout in ("half", "interleaved", "interleaved_to_half")
    },
    **{
        f"rope {layout} trailing": _rope(layout=layout, rotary_dim=6, lanes="trailing")
        for layout in ("half", "interleaved", "interleaved_to_half")
    },
    "rope Linear": _rope(scaling=Linear(4.0)),
    "rope NTKAware": _rope(scaling=NTKAware(4.0), base=5e5),
    "rope DynamicNTK": _rope(scaling=DynamicNTK(2.0, 100), length=333),
    "rope Llama3": _rope(scaling=Llama3(8.0, 128), base=5e5),
    "rope YaRN": _rope(scaling=YaRN(8.0, 256, truncate=False), layout="interleaved"),
    "rope YaRN turns": _rope(scaling=YaRNByTurns(8.0, 256)),
    "rope DynamicYaRN": _rope(scaling=DynamicYaRN(100), length=333),
    "rope NTKAlpha": _rope(scaling=NTKAlpha(6.5)),
    "rope NTKFixed": _rope(scaling=NTKFixed(4.0)),
    "rope NTKMixed": _rope(scaling=NTKMixed(4.0)),
    "rope LongRoPE": _rope(
        scaling=LongRoPE((1.0, 1.5, 2.0, 2.5, 3.0, 4.0), (2.0, 3.0, 4.0, 6.0, 7.0, 9.0), 32, 256), length=99
    ),
    "rope Proportional": _rope(scaling=Proportional(0.5)),
    **{
        f"axial_table {arrangement}": Call(
            (AXES,),
            lambda p, dtype, arrangement=arrangement, sections=sections: posref.axial_table(
                p, FREQUENCIES, sections=sections, arrangement=arrangement, attention_factor=1.25, dtype=dtype
            ),
            takes_dtype=True,
        )
        for arrangement, sections in (("chunked", (1, 1, 1)), ("ernie", (1, 1, 1)), ("interleaved", (1, 1, 1)))
    },
    "mrope": Call(
        (X, AXES),
        lambda x, p, dtype: posref.mrope(x, p, sections=(2, 3, 1), arrangement="round_robin", layout="half", base=10000.0),
    ),
    **{
        f"xpos_scales {role}": Call(
            (PLACES // 64,),
            lambda p, dtype, role=role: posref.xpos_scales(p, 6, role=role, centre=500, gamma=0.75, dtype=dtype),
            takes_dtype=True,
        )
        for role in ("query", "key")
    },
    "xpos query": Call((X, PLACES), lambda x, p, dtype: posref.xpos(x, p, role="query", scale_base=2**18, **XPOS)),
    "xpos key": Call((X, PLACES), lambda x, p, dtype: posref.xpos(x, p, role="key", scale_base=2**17, rotary_dim=6, **XPOS)),
    **{
        f"axial_rope {layout} {arrangement}": Call(
            (X, AXES),
            lambda x, p, dtype, layout=layout, arrangement=arrangement: posref.axial_rope(
                x, p, dims=(2, 6, 2), base=100.0, allocation="own", arrangement=arrangement, layout=layout
            ),
        )
        for layout, arrangement in (("half", "chunked"), ("interleaved", "round_robin"), ("half_by_axis", "chunked"))
    },
    "mixed_table": Call(
        (AXES,),
        lambda p, dtype: posref.mixed_table(p, LEARNED[:, :, None], dtype=dtype),
        takes_dtype=True,
    ),
    "mixed_rope": Call((X, AXES), lambda x, p, dtype: posref.mixed_rope(x, p, LEARNED[:, None, :, None], layout="interleaved")),
    "liere_rotations": Call(
        (CELLS, reals(2, 3, 1, 2, 3, 3) / 8), lambda p, g, dtype: posref.liere_rotations(p, g, dtype=dtype), takes_dtype=True
    ),
    **{
        f"liere {inverse}": Call(
            (X, CELLS, reals(2, 1, 3, 1, 2, 4, 4) / 8),
            lambda x, p, g, dtype, inverse=inverse: posref.liere(x, p, g, inverse=inverse),
        )
        for inverse in (False, True)
    },
    "cayley": Call((reals(3, 6, 6) / 8,), lambda s, dtype: posref.cayley(s, dtype=dtype), takes_dtype=True),
    **{
        f"cayley_string {form}": Call(
            (X, CELLS, reals(1, 3, 1, 12, 12) / 32, reals(2, 1, 3, 1, 5) / 8),
            lambda x, p, s, f, dtype, form=form: posref.cayley_string(x, p, s, f, form=form),
        )
        for form in ("conjugate", "product")
    },
    **{
        f"circulant_string {n}": Call(
            (X, CELLS, reals(2, 1, 3, 1, 12 // n, n) / 8), lambda x, p, c, dtype: posref.circulant_string(x, p, c)
        )
        for n in (5, 6)
    },
    "axial_rope shared inverse": Call(
        (X, AXES[:2]),
        lambda x, p, dtype: posref.axial_rope(
            x, p, dims=(6, 6), base=500.0, allocation="shared", arrangement="chunked", layout="half", inverse=True
        ),
    ),
    **{
        f"rotated_values {layout} {lanes}": Call(
            (np.abs(reals(2, 4, 3, 7)), reals(2, 2, 7, 10), Q, K),
            lambda w, v, q, k, dtype, layout=layout, lanes=lanes: posref.rotated_values(
                w, v, q, k, layout=layout, base=10000.0, rotary_dim=6, lanes=lanes, scaling=YaRN(8.0, 256)
            ),
        )
        for layout, lanes in (("half", "leading"), ("interleaved", "trailing"), ("interleaved_to_half", "trailing"))
    },
    **{
        f"mla_logits {scale}": Call(
            (reals(2, 4, 3, 5), reals(2, 4, 3, 6), reals(2, 4, 7, 5), reals(2, 7, 6), Q, K),
            lambda a, b, c, d, q, k, dtype, scale=scale: posref.mla_logits(
                a, b, c, d, q, k, layout="interleaved", base=10000.0, scaling=YaRN(8.0, 256), scale=scale
            ),
        )
        for scale in (None, 0.375)
    },
    **{
        f"rotary_linear_attention {causal}": Call(
            (reals(2, 3, 6), reals(2, 7, 6), reals(2, 7, 5), Q, K),
            lambda q, k, v, p, r, dtype, causal=causal: posref.rotary_linear_attention(
                q, k, v, p, r, layout="half", base=10000.0, causal=causal
            ),
        )
        for causal in (False, True)
    },
    "pope cos_sin": Call((X * 4, PLACES), lambda x, p, dtype: posref.pope(x, p, layout="cos_sin", base=10000.0)),
    "pope keys": Call(
        (X, PLACES, np.round(reals(3, 1, 12) * 12) / 4 - 3),
        lambda x, p, s, dtype: posref.pope(x, p, layout="interleaved", base=500.0, phases=s),
    ),
    "fope": Call((X, PLACES, reals(3, 5, 4), reals(3, 5, 4)), lambda x, p, a, b, dtype: posref.fope(x, p, a, b, base=500.0)),
    "permute_qk_weights": Call(
        (reals(20, 3),),
        lambda w, dtype: posref.permute_qk_weights(w, heads=2, rotary_dim=8, source="half", target="interleaved"),
    ),
    "rotation_matrix": Call(
        (PLACES,),
        lambda p, dtype: posref.rotation_matrix(p, 6, layout="interleaved_to_half", base=10000.0, dtype=dtype),
        takes_dtype=True,
    ),
    "alibi distance": Call((Q, K), lambda q, k, dtype: posref.alibi(q, k, heads=5, form="distance", dtype=dtype), True),
    "alibi causal": Call((Q, K), lambda q, k, dtype: posref.alibi(q, k, heads=5, form="causal", dtype=dtype), True),
    "alibi key": Call((Q, K), lambda q, k, dtype: posref.alibi(q, k, heads=5, form="key", dtype=dtype), True),
    "t5_buckets": Call(
        (K[:, None] - Q,), lambda r, dtype: posref.t5_buckets(r, bidirectional=True, num_buckets=8, max_distance=30)
    ),
    "t5_bias causal": Call((Q, K, TABLE), lambda q, k, t, dtype: posref.t5_bias(q, k, t, bidirectional=False)),
    "t5_bias both": Call((Q, K, TABLE), lambda q, k, t, dtype: posref.t5_bias(q, k, t, bidirectional=True, max_distance=30)),
    **_shaw("key_minus_query", 3, 3),
    **_shaw("query_minus_key", 4, 2),
    **{name: call for op in EXTENSIONS for name, call in _extension(op).items()},
    "attention_logits": Call(
        (reals(2, 4, 3, 5), reals(2, 2, 7, 5), reals(4, 3, 7)),
        lambda q, k, b, dtype: posref.attention_logits(q, k, bias=b, scale=0.75),
    ),
    "attention": _attention(reals(2, 3, 5), reals(2, 7, 5), reals(2, 7, 6)),
    "attention masked": _attention(
        reals(2, 4, 3, 5), reals(2, 2, 7, 5), reals(2, 2, 7, 6), reals(4, 3, 7), mask=MASK, bias=True
    ),
    "attention sinks": _attention(reals(2, 3, 5), reals(2, 7, 5), reals(2, 7, 6), reals(2), sinks=True),
    "attention sinks masked": _attention(reals(4, 3, 5), reals(2, 7, 5), reals(2, 7, 6), reals(4), mask=MASK, sinks=True),
    **{
        f"sliding_window {counting} {sides}": Call(
            (Q, K),
            lambda q, k, dtype, counting=counting, sides=sides: posref.sliding_window(
                q, k, window=4, counting=counting, sides=sides
            ),
        )
        for counting, sides in (("with_query", "causal"), ("without_query", "both"))
    },
    **{
        f"chunked_window {sides}": Call(
            (Q - 5, K - 5), lambda q, k, dtype, sides=sides: posref.chunked_window(q, k, chunk=4, sides=sides)
        )
        for sides in ("causal", "both")
    },
    "lambda_window": Call((Q, K), lambda q, k, dtype: posref.lambda_window(q, k, sinks=2, window=3, counting="without_query")),
    **{
        f"logn_scale {limited}": Call(
            (PLACES,),
            lambda p, dtype, limited=limited: posref.logn_scale(p, length=200, offset=1, at_least_one=limited, dtype=dtype),
            takes_dtype=True,
        )
        for limited in (True, False)
    },
    **{
        f"attention_temperature {form}": Call(
            (PLACES,),
            lambda p, dtype, form=form: posref.attention_temperature(p, form=form, beta=0.3, length=200, offset=0, dtype=dtype),
            takes_dtype=True,
        )
        for form in ("steps", "smooth")
    },
}


def is_real(x: np.ndarray) -> bool:
    return x.dtype.kind == "f"


@cache
def expected(name: str, accuracy: str) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return value and bound of every output of a call; integers have bound 0."""
    call, xp = CALLS[name], bounds(accuracy)
    inputs = [xp.asarray(x, dtype=xp.storage if is_real(x) else None) for x in call.inputs]
    if name == "rope_table":
        inputs[1] = xp.asarray(call.inputs[1], dtype=xp.float64)
    outputs = as_tuple(call.function(*inputs, dtype=xp.storage))
    return tuple((out.parts[0], out.parts[1] if len(out.parts) > 1 else np.zeros(out.shape)) for out in outputs)


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def given(call: Call, library: Library, dtype: str) -> list[Any]:
    """
    Return the inputs in the library: host float64 frequencies as they are, which is how they are meant to be given.
    """
    frequencies = call.function is CALLS["rope_table"].function
    return [x if frequencies and i == 1 else library.array(x, dtype if is_real(x) else None) for i, x in enumerate(call.inputs)]


def assert_within(got: np.ndarray, name: str, accuracy: str, output: int) -> None:
    """Assert that `got` is within the class's bound of the value, which is itself known within the bound of float64."""
    value, bound = expected(name, accuracy)[output]
    assert got.shape == value.shape
    allowed = bound + expected(name, "float64")[output][1]
    excess = np.abs(got.astype(np.float64) - value) - allowed
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert np.all(excess <= 0), f"{name}: {got[worst]!r} is not within {allowed[worst]:.3g} of {value[worst]!r} at {worst}"
