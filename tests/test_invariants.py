"""
The properties that each definition names in the registry, on random inputs. A property that a definition names has a test here.

A wrong frequency passes most of them; vectors catch that. Tolerances follow from rounding, u = 2^-53 a float64
operation: an angle p f is rounded once where it is formed, which turns the pair by at most p f u, and every sum of n
products is off by at most n u of the sum of their magnitudes (Higham, section 3.1). Where both sides do the same
operations on the same numbers, bits are equal.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from invariants import GENERIC

import posref
from posref.backends.bounds import bounds
from posref.rotary.apply_rope import LAYOUTS
from posref.scaling import YaRN
from posref.spec import REGISTRY

U = 2.0**-53
positions = st.integers(0, 2**20)
seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from(sorted(LAYOUTS))
bases = st.sampled_from([100.0, 10000.0, 500000.0, 1e6])
settings.register_profile("posref", max_examples=100, deadline=None, derandomize=True)
settings.load_profile("invariants")  # fewer examples in a plain run; the thorough one has them all


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def places(seed: int, n: int, high: int = 2**20) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, n)


def turned(x: np.ndarray, p: Any, layout: str, base: float = 10000.0, **options: Any) -> np.ndarray:
    return posref.rope(x, np.asarray(p), layout=layout, base=base, **options)


def norm(x: np.ndarray) -> Any:
    return np.linalg.norm(x, axis=-1)


def angle_error(*at: int) -> float:
    """Return how far the angles of positions turn a pair by rounding: frequencies are at most 1; cos and sin each within 2u."""
    return U * (sum(abs(p) for p in at) + 2 * len(at))


def with_bound(function: str, *arrays: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what a definition gives in float64, and the bound of the error, which is that of class float64."""
    xp = bounds("float64")
    record = REGISTRY[function].function
    given = [xp.asarray(x, dtype=xp.float64 if x.dtype.kind == "f" else None) for x in arrays]
    return record(*arrays, **options), record(*given, **options).parts[1]


# ---- rotary ---------------------------------------------------------


@given(seed=seeds, p=positions, layout=layouts, base=bases)
def norm_kept(function: str, seed: int, p: int, layout: str, base: float) -> None:
    """Cos and sin have c^2 + s^2 = 1 to 4u, whatever the angle; two products and a sum for each lane, 3u; norms, (n + 2) u."""
    x = normal(seed, 12)
    y = via(function, x, p, layout, base)
    assert abs(norm(y) - norm(x)) <= (4 + 3 + 2 * 14) * U * norm(x)


@given(seed=seeds, p=positions, layout=layouts, base=bases)
def tail_unchanged(function: str, seed: int, p: int, layout: str, base: float) -> None:
    """Lanes beyond those that rotate, all of which do from a position on that moves every coordinate."""
    x = normal(seed, 3, 12)
    leading = via(function, x, p, layout, base, rotary_dim=8)
    np.testing.assert_array_equal(leading[:, 8:], x[:, 8:])
    assert p < 3 or np.all(leading[:, :8] != x[:, :8])
    if function in ("rope", "apply_rope"):  # trailing lanes are the leading ones of the lanes in another order
        moved = via(function, np.roll(x, 4, axis=-1), p, layout, base, rotary_dim=8, lanes="trailing")
        np.testing.assert_array_equal(moved, np.roll(leading, 4, axis=-1))


def via(
    function: str, x: np.ndarray, p: Any, layout: str, base: float, rotary_dim: int | None = None, lanes: str = "leading"
) -> np.ndarray:
    """Return the rotation by `rope`, or by its stages; on a grid, at a third of the position on its third axis."""
    axes = np.stack([np.broadcast_to(np.asarray(p) // n, x.shape[:-1]) for n in (1, 2, 3)])
    width = rotary_dim or x.shape[-1]
    options = {"layout": layout, "base": base}
    if function == "rope":
        return turned(x, p, layout, base, rotary_dim=rotary_dim, lanes=lanes)
    if function == "xpos":
        return posref.xpos(x, np.asarray(p % 9000), role="key", centre=7, rotary_dim=rotary_dim, **options)
    if function == "axial_rope":
        layout = {"interleaved_to_half": "half_by_axis"}.get(layout, layout)
        return axial(x, axes[:2], (4, width - 4), layout, base)
    if function == "mixed_rope":
        return posref.mixed_rope(x, axes[:2], normal(7, 2, width // 2), layout=layout)
    if function == "mrope":
        return posref.mrope(x, axes, sections=(width // 2 - 2, 1, 1), arrangement="chunked", **options)
    if function in LIE:
        parameters, of_form = LIE[function](x, 7)
        return getattr(posref, function)(x, axes[:2], *parameters, **of_form)
    frequencies, _ = posref.rope_frequencies(width, base=base)
    table = posref.rope_table(np.asarray(p), frequencies, dtype=np.dtype("float64"))
    return posref.apply_rope(x, *table, layout=layout, lanes=lanes)


def axial(x: np.ndarray, p: np.ndarray, dims: tuple[int, ...], layout: str, base: float = 100.0, **options: Any) -> np.ndarray:
    options = {"allocation": "own", "arrangement": "chunked"} | options
    return posref.axial_rope(x, p, dims=dims, layout=layout, base=base, **options)


@given(seed=seeds, layout=layouts, base=bases)
def identity_at_0(function: str, seed: int, layout: str, base: float) -> None:
    x = normal(seed, 2, 8)
    expected = x if layout != "interleaved_to_half" else np.concatenate([x[:, 0::2], x[:, 1::2]], -1)
    np.testing.assert_array_equal(turned(x, [0, 0], layout, base), expected)


# ---- xPos -----------------------------------------------------------


@given(seed=seeds, p=st.integers(0, 9000), n=st.integers(0, 9000), c=st.integers(0, 9000), layout=layouts)
def xpos_centre_cancels(function: str, seed: int, p: int, n: int, c: int, layout: str) -> None:
    """Both logits are within the errors of the rotated vectors, and a sum of 8 products."""
    x, logits, allowed = normal(seed, 2, 8), [], 0.0
    for centre in (0, c):
        options = {"layout": layout, "base": 10000.0, "centre": centre}
        (q,), (e,) = with_bound("xpos", x[:1], np.asarray([p]), role="query", **options)
        (k,), (f,) = with_bound("xpos", x[1:], np.asarray([n]), role="key", **options)
        logits.append(float(q @ k))
        allowed += float(np.abs(q) @ f + np.abs(k) @ e + e @ f + 8 * U * np.abs(q) @ np.abs(k))
    assert abs(logits[0] - logits[1]) <= allowed


# ---- FoPE -----------------------------------------------------------


@given(seed=seeds, base=bases)
def fope_is_rope(function: str, seed: int, base: float) -> None:
    """Bit for bit with mixes that are the identity, of all pairs: sums of one number and zeros."""
    x, p, one = normal(seed, 3, 5, 8), places(seed, 5), np.broadcast_to(np.eye(4), (3, 4, 4))
    np.testing.assert_array_equal(posref.fope(x, p, one, one, base=base), turned(x, p, "half", base))


sections = st.sampled_from(
    [((1, 3, 2), "chunked"), ((2, 2, 2), "ernie"), ((3, 2, 1), "interleaved"), ((1, 2, 3), "round_robin"), ((4, 2), "chunked")]
)


@given(seed=seeds, layout=layouts, base=bases, axes=sections)
def text_is_rope(function: str, seed: int, layout: str, base: float, axes: tuple[tuple[int, ...], str]) -> None:
    """Bit for bit: the same angles, put together in another order."""
    x, p = normal(seed, 5, 14), places(seed, 5)
    options = {"sections": axes[0], "arrangement": axes[1], "layout": layout, "base": base}
    found = posref.mrope(x, np.stack([p] * len(axes[0])), **options)
    np.testing.assert_array_equal(found, turned(x, p, layout, base, rotary_dim=12))


ways = st.sampled_from(
    [("half_by_axis", "chunked")] + [(layout, way) for layout in ("half", "interleaved") for way in ("chunked", "round_robin")]
)
LIE: dict[
    str, Callable[[np.ndarray, int], tuple[tuple[np.ndarray, ...], dict[str, Any]]]
] = {  # parameters for lanes, from a seed
    "liere": lambda x, seed: ((normal(seed, 2, 2, 4, 4) / 8,), {}),
    "cayley_string": lambda x, seed: (
        (normal(seed, x.shape[-1], x.shape[-1]) / 8, normal(seed + 1, 2, 3)),
        {"form": "conjugate"},
    ),
    "circulant_string": lambda x, seed: ((normal(seed, 2, 2, 4) / 8,), {}),
}


@given(seed=seeds, n=st.integers(2, 6))
def orthogonal(function: str, seed: int, n: int) -> None:
    """Rows have length 1, and right angles between them: within the errors of both factors, and a sum of n products."""
    parameter = normal(seed, 2, 1, n, n) / 4
    arrays = (parameter,) if function == "cayley" else (places(seed, 6, 30).reshape(2, 3), parameter)
    r, error = with_bound(function, *arrays)
    size, error = np.abs(r), np.swapaxes(error, -1, -2)
    off = (
        size @ error
        + np.swapaxes(size @ error, -1, -2)
        + np.swapaxes(error, -1, -2) @ error
        + n * U * size @ np.swapaxes(size, -1, -2)
    )
    assert np.all(np.abs(r @ np.swapaxes(r, -1, -2) - np.eye(n)) <= off)


@given(seed=seeds, high=st.sampled_from([3, 100, 10000]))
def norm_kept_by_matrices(function: str, seed: int, high: int) -> None:
    x, p = normal(seed, 3, 8), places(seed, 6, high).reshape(2, 3)
    parameters, options = LIE[function](x, seed)
    y, error = with_bound(function, x, p, *parameters, **options)
    assert np.all(np.abs(norm(y) - norm(x)) <= norm(error) + 2 * (8 + 2) * U * norm(x))


@given(seed=seeds, heads=st.sampled_from([(4, 4), (6, 2), (3, 1)]), partial=st.booleans(), back=st.booleans())
def logits_kept(function: str, seed: int, heads: tuple[int, int], partial: bool, back: bool) -> None:
    """
    Weights and biases, permuted, give the same q.k in the other layout: the same products in another order.

    Each lane is a sum of 7 products and a bias, turned by 3 operations; each logit a sum of 10 products.
    """
    source, target = ("half", "interleaved") if back else ("interleaved", "half")
    width, rotated, inputs = 10, 6 if partial else 10, normal(seed, 5, 7)
    p, largest = places(seed, 5), []

    def logits(layout: str, permuted: bool) -> np.ndarray:
        lanes = []
        for n, count in enumerate(heads):
            weight, bias = normal(seed + n + 1, count * width, 7), normal(seed + n + 3, count * width)
            if permuted:
                options = {"heads": count, "rotary_dim": rotated, "source": source, "target": target}
                weight, bias = (posref.permute_qk_weights(part, **options) for part in (weight, bias))
            x = np.moveaxis((inputs @ weight.T + bias).reshape(5, count, width), 1, 0)
            largest.append(norm((np.abs(inputs) @ np.abs(weight).T + np.abs(bias)).reshape(5, count, width)).max())
            lanes.append(np.repeat(turned(x, p, layout, rotary_dim=rotated), heads[0] // count, axis=0))
        return np.einsum("hqd,hkd->hqk", *lanes)

    apart = np.abs(logits(source, False) - logits(target, True))
    assert np.max(apart) <= 2 * (2 * (8 + 2 * 3) + width) * U * largest[0] * largest[1]


@given(seed=seeds, layout=layouts)
def rope_in_chunks(function: str, seed: int, layout: str) -> None:
    """In float32 too, and with a factor."""
    for dtype in (np.float64, np.float32):
        x, p = normal(seed, 2, 3, 9, 8).astype(dtype), places(seed, 9)
        chunks = [turned(x[..., i : i + 2, :], p[i : i + 2], layout, scaling=YaRN(4.0, 64)) for i in range(0, 9, 2)]
        np.testing.assert_array_equal(np.concatenate(chunks, axis=-2), turned(x, p, layout, scaling=YaRN(4.0, 64)))


BATCHES: dict[str, tuple[tuple[int, ...], st.SearchStrategy[dict[str, Any]]]] = {  # axes of coordinates, and options
    "xpos": ((), st.fixed_dictionaries({"role": st.just("query"), "layout": layouts, "base": bases, "centre": st.just(4500)})),
    "pope": (
        (),
        st.fixed_dictionaries({"layout": st.sampled_from(["cos_sin", "interleaved"]), "base": bases}).map(
            lambda options: options | {"phases": -np.abs(normal(7, 12))}
        ),
    ),
    "mrope": (
        (3,),
        st.tuples(layouts, bases, sections.filter(lambda axes: len(axes[0]) == 3)).map(
            lambda drawn: {"layout": drawn[0], "base": drawn[1], "sections": drawn[2][0], "arrangement": drawn[2][1]}
        ),
    ),
    "axial_rope": (
        (3,),
        st.tuples(ways, bases).map(
            lambda drawn: (
                {"layout": drawn[0][0], "arrangement": drawn[0][1], "base": drawn[1]} | {"dims": (2, 6, 4), "allocation": "own"}
            )
        ),
    ),
}


@given(seed=seeds, data=st.data())
def batch_decodes(function: str, seed: int, data: st.DataObject) -> None:
    """One token at its position is that row of the whole, and a row of a batch is the row alone."""
    coordinates, strategy = BATCHES[function]
    options = data.draw(strategy)
    shape = (*coordinates, 2, 5)
    x, p = normal(seed, 2, 5, 12), places(seed, math.prod(shape), 9000).reshape(shape)
    whole = getattr(posref, function)(x, p, **options)
    for t in range(5):
        alone = getattr(posref, function)(x[1, t : t + 1], p[..., 1, t : t + 1], **options)
        np.testing.assert_array_equal(alone[0], whole[1, t])


@given(seed=seeds, layout=layouts)
def rope_is_batch_equivariant(function: str, seed: int, layout: str) -> None:
    """Batch entries and heads are rotated alike and apart: in another order they come out in that order."""
    x, p = normal(seed, 4, 3, 5, 8), places(seed, 5)
    rng = np.random.default_rng(seed)
    rows, heads = rng.permutation(4), rng.permutation(3)
    mixed = via(function, x[rows][:, heads], p, layout, 10000.0)
    np.testing.assert_array_equal(mixed, via(function, x, p, layout, 10000.0)[rows][:, heads])


@given(seed=seeds, p=positions, layout=layouts, base=bases)
def plain_tail(function: str, seed: int, p: int, layout: str, base: float) -> None:
    """Lanes that do not rotate hold the weighted sum; 7 products, in any order."""
    weights, v, q, k = np.abs(normal(seed, 5, 7)), normal(seed, 7, 12), places(seed, 5) + p, places(seed, 7)
    found = posref.rotated_values(weights, v, q, k, layout=layout, base=base, rotary_dim=8)
    largest = 7 * float(np.max(weights) * np.max(np.abs(v)))
    assert np.all(np.abs(found[:, 8:] - (weights @ v)[:, 8:]) <= 2 * 7 * U * largest)


# ---- absolute ---------------------------------------------------------


@given(seed=seeds, layout=st.sampled_from(["interleaved", "sin_cos", "cos_sin"]), endpoint=st.booleans(), base=bases)
def bounded(function: str, seed: int, layout: str, endpoint: bool, base: float) -> None:
    """Between -1 and 1 (a correctly rounded or faithful sine is never beyond), and sin^2 + cos^2 = 1 within 2u a wave."""
    table = posref.sinusoidal(places(seed, 20), 8, layout=layout, base=base, endpoint=endpoint)
    assert np.all(np.abs(table) <= 1)
    assert np.all(np.abs(np.sum(table**2, axis=-1) - 4) <= 4 * (4 + 4 + 3) * U)


@given(start=st.integers(0, 2**19), base=bases)
def distinct(function: str, start: int, base: float) -> None:
    """Positions within 2 pi base/ base^(2/d) of each other have different rows: no two of 200 are equal."""
    table = posref.sinusoidal(np.arange(start, start + 200), 8, layout="sin_cos", base=base)
    assert len(np.unique(table, axis=0)) == 200


@given(p=positions, k=positions, base=bases)
def linear(function: str, p: int, k: int, base: float) -> None:
    """PE(p+k) is PE(p) turned by k f in every pair: Vaswani et al., section 3.5; two products and a sum, 3u."""
    sin, cos = posref.sinusoidal(np.asarray([p, k, p + k]), 8, layout="sin_cos", base=base).reshape(3, 2, 4).swapaxes(0, 1)
    turned_sin = sin[0] * cos[1] + cos[0] * sin[1]
    turned_cos = cos[0] * cos[1] - sin[0] * sin[1]
    allowed = angle_error(p, k, p + k) + 3 * U
    assert np.all(np.abs(turned_sin - sin[2]) <= allowed)
    assert np.all(np.abs(turned_cos - cos[2]) <= allowed)


@given(seed=seeds)
def rows_of_a_table(function: str, seed: int) -> None:
    table, p = normal(seed, 20, 6), places(seed, 12, 18)
    order = np.random.default_rng(seed).permutation(12)
    np.testing.assert_array_equal(posref.learned(p[order], table, offset=2), posref.learned(p, table, offset=2)[order])
    np.testing.assert_array_equal(posref.learned(p.reshape(3, 4), table), posref.learned(p, table).reshape(3, 4, 6))


def on_a_grid(seed: int) -> tuple[Any, tuple[int, int], dict[str, Any]]:
    """Return a table with a prefix, a new grid, and options."""
    draw = np.random.default_rng(seed)
    (old, new), antialias = draw.integers(1, 7, (2, 2)).tolist(), bool(draw.integers(2))
    options = {"method": str(draw.choice(["linear", "cubic"])), "antialias": antialias, "align_corners": bool(draw.integers(2))}
    return normal(seed, 2 + old[0] * old[1], 3), tuple(new), {"old_size": tuple(old), "prefix": 2, **options}


@given(seed=seeds)
def prefix_kept(function: str, seed: int) -> None:
    table, new, options = on_a_grid(seed)
    np.testing.assert_array_equal(posref.resample(table, new, **options)[:2], table[:2])


@given(seed=seeds)
def same_size_is_the_identity(function: str, seed: int) -> None:
    table, _, options = on_a_grid(seed)
    np.testing.assert_array_equal(posref.resample(table, options["old_size"], **options), table)


@given(seed=seeds)
def transposes(function: str, seed: int) -> None:
    """Of the transposed grid it is the transpose: two sums of 10 products and their weights, at most 2 times 8 in size."""
    table, (height, width), options = on_a_grid(seed)
    (h, w), first = options["old_size"], posref.resample(table, (height, width), **options)[2:]
    turned = np.concatenate([table[:2], table[2:].reshape(h, w, 3).swapaxes(0, 1).reshape(-1, 3)])
    other = posref.resample(turned, (width, height), **options | {"old_size": (w, h)})[2:]
    other = other.reshape(width, height, 3).swapaxes(0, 1).reshape(-1, 3)
    assert np.all(np.abs(first - other) <= 2 * 2 * (36 + 8) * 8 * U)


# ---- length extensions ---------------------------------------------------------

LAYOUT = ("half", "interleaved", "interleaved_to_half")
OWN: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "rerope": st.fixed_dictionaries({"window": st.integers(1, 400)}),
    "leaky_rerope": st.fixed_dictionaries({"window": st.integers(1, 400), "factor": st.integers(1, 20)}),
    "self_extend": st.fixed_dictionaries(
        {"group": st.integers(1, 20), "window": st.integers(1, 400), "rounding": st.sampled_from(["floor", "exact"])}
    ),
    "dual_chunk": st.tuples(st.integers(1, 200), st.integers(0, 199)).map(
        lambda sizes: {"chunk_size": sum(sizes), "window": sizes[1]}
    ),
    "streaming_llm": st.fixed_dictionaries(
        {
            "num_sinks": st.integers(0, 200),
            "window": st.integers(1, 400),
            "counting": st.sampled_from(["with_query", "without_query"]),
        }
    ),
}


@given(seed=seeds, high=st.sampled_from([300, 2**17]), data=st.data())
def passes_equal_the_map(function: str, seed: int, high: int, data: st.DataObject) -> None:
    """Two or three passes with a choice between them are one rotation of every pair by its own relative position."""
    own = data.draw(OWN[function])
    m, n = places(seed, 7, high), places(seed + 1, 9, high)
    q, k = normal(seed, 2, 4, 7, 6), normal(seed + 1, 2, 2, 9, 6)
    rotary_dim, layout = 4 + seed % 2 * 2, LAYOUT[seed % 3]
    options = {"layout": layout, "base": 10000.0, "rotary_dim": rotary_dim}
    found, error = with_bound(function, q, k, m, n, **own, **options)
    apart = getattr(posref, f"{function}_distances")(m, n, **own)
    matrices = np.zeros((7, 9, 6, 6)) + np.eye(6)
    matrices[..., :rotary_dim, :rotary_dim] = posref.rotation_matrix(-apart, rotary_dim, layout=layout, base=10000.0)
    if layout == "interleaved_to_half":  # written elsewhere than read: the lanes of queries too
        q[..., :rotary_dim] = turned(q[..., :rotary_dim], np.zeros(7), layout)
    expected = np.einsum("bhqd,qkde,bhke->bhqk", q, matrices, np.repeat(k, 2, axis=1))
    # an angle of the map is rounded once, and so is each of 6 products and sums of 6 by 6 numbers
    of_map = (angle_error(int(np.max(np.abs(apart))) + 1) + 2 * 6 * U) * norm(q).max() * norm(k).max()
    assert np.all(np.abs(found - expected) <= error + of_map)


# ---- masks and factors on queries ---------------------------------------------------------


@given(seed=seeds)
def mask_decodes(function: str, seed: int) -> None:
    """Every key alone is a column of all, and chunks of queries are the whole."""
    q, k = places(seed, 7, 60) - 10, places(seed + 1, 9, 60) - 10
    counting = {"window": 1 + seed % 40, "counting": ("with_query", "without_query")[seed // 40 % 2]}
    sides = {"sides": ("causal", "both")[seed // 80 % 2]}
    options = {
        "sliding_window": counting | sides,
        "chunked_window": {"chunk_size": 1 + seed % 40} | sides,
        "lambda_window": {"num_sinks": seed % 7} | counting,
    }[function]
    of = functools.partial(getattr(posref, function), **options)
    whole = of(q, k)
    np.testing.assert_array_equal(np.concatenate([of(q[:3], k), of(q[3:], k)]), whole)
    np.testing.assert_array_equal(np.concatenate([of(q, k[j : j + 1]) for j in range(9)], axis=1), whole)


@given(seed=seeds)
def factor_grows(function: str, seed: int) -> None:
    """The factor of a query never falls as its position grows."""
    p = np.sort(places(seed, 9, 5000))
    options = {
        "logn_scale": {"original_length": 2 + seed % 900, "offset": seed % 3, "at_least_one": bool(seed % 2)},
        "attention_temperature": {
            "form": ("steps", "smooth")[seed % 2],
            "beta": (1 + seed % 30) / 10,
            "original_length": 1 + seed % 900,
            "offset": seed % 3,
        },
    }[function]
    assert np.all(np.diff(getattr(posref, function)(p, **options)) >= 0)


# ---- attention ---------------------------------------------------------


@given(seed=seeds)
def permutation_equivariant(function: str, seed: int) -> None:
    """
    Without an encoding, attention does not know the order of its tokens.

    Logits sum 4 products of magnitude m: 6 u m with the scale. Weights then carry twice that and 2u for exp, a sum of 6 and a
    division; the output sums 6 products. Both sides, so everything twice.
    """
    q, k, v = normal(seed, 3, 2, 6, 4)
    order = np.random.default_rng(seed).permutation(6)
    of_logits = 6 * U * norm(q).max() * norm(k).max()
    if function == "attention_logits":
        whole, mixed = posref.attention_logits(q, k), posref.attention_logits(q[:, order], k[:, order])
        assert np.all(np.abs(mixed - whole[:, order][:, :, order]) <= 2 * of_logits)
    else:
        whole, mixed = posref.attention(q, k, v), posref.attention(q[:, order], k[:, order], v[:, order])
        of_weights = 2 * (2 * of_logits + (2 + 6 + 1) * U)
        assert np.all(np.abs(mixed - whole[:, order]) <= 2 * (of_weights + 6 * U) * np.abs(v).max())


PROPERTIES: dict[str, dict[str, Callable[..., None]]] = {
    "norm kept": dict.fromkeys(("rope", "apply_rope", "mrope", "axial_rope", "mixed_rope"), norm_kept)
    | dict.fromkeys(LIE, norm_kept_by_matrices),
    "orthogonal": dict.fromkeys(("liere_rotations", "cayley"), orthogonal),
    "tail unchanged": dict.fromkeys(
        ("rope", "apply_rope", "mrope", "axial_rope", "mixed_rope", "xpos", "liere", "circulant_string"), tail_unchanged
    )
    | {"rotated_values": plain_tail},
    "text is rope": {"mrope": text_is_rope},
    "logits kept": {"permute_qk_weights": logits_kept},
    "identity at 0": {"rope": identity_at_0},
    "plain is rope": {"fope": fope_is_rope},
    "centre cancels": {"xpos": xpos_centre_cancels},
    "chunks": {"rope": rope_in_chunks},
    "batch equivariant": {
        "rope": rope_is_batch_equivariant,
        "apply_rope": rope_is_batch_equivariant,
        "learned": rows_of_a_table,
    },
    "bounded": {"sinusoidal": bounded},
    "distinct": {"sinusoidal": distinct},
    "prefix kept": {"resample": prefix_kept},
    "same size is the identity": {"resample": same_size_is_the_identity},
    "transposes": {"resample": transposes},
    "linear in PE(p)": {"sinusoidal": linear},
    "decode": dict.fromkeys(BATCHES, batch_decodes)
    | dict.fromkeys(("sliding_window", "chunked_window", "lambda_window"), mask_decodes)
    | dict.fromkeys(("logn_scale", "attention_temperature"), factor_grows),
    "equals its map": dict.fromkeys(OWN, passes_equal_the_map),
    "permutation equivariant": dict.fromkeys(("attention", "attention_logits"), permutation_equivariant),
}
settings.load_profile("posref")
NAMED = [(name, invariant) for name, record in REGISTRY.items() for invariant in record.invariants]


def test_every_property_is_named_in_the_registry() -> None:
    assert {(name, invariant) for invariant, functions in PROPERTIES.items() for name in functions} <= set(NAMED)
    assert set(GENERIC) <= {invariant for _, invariant in NAMED}


# ---- what ties definitions together ---------------------------------------------------------


@given(seed=seeds, p=positions, layout=layouts, base=bases)
def test_matrix_complex_and_elementwise_forms_agree(seed: int, p: int, layout: str, base: float) -> None:
    """Equations (15), (12) and (34): one table, so only products and sums differ: 3 operations a lane, or a sum over 8."""
    x = normal(seed, 8)
    by_lanes = turned(x, p, layout, base)
    by_matrix = posref.rotation_matrix(np.asarray(p), 8, layout=layout, base=base) @ x
    frequencies, _ = posref.rope_frequencies(8, base=base)
    read, write = LAYOUTS[layout]
    z = (x[:4] + 1j * x[4:] if read == "half" else x[0::2] + 1j * x[1::2]) * np.exp(1j * p * frequencies)
    by_complex = np.concatenate([z.real, z.imag]) if write == "half" else np.stack([z.real, z.imag], -1).ravel()
    assert np.all(np.abs(by_matrix - by_lanes) <= (3 + 8) * U * np.abs(x).sum())
    assert np.all(np.abs(by_complex - by_lanes) <= (2 * 3 + 4) * U * np.abs(x).sum())


@given(m=positions, n=positions, base=bases, layout=st.sampled_from(["half", "interleaved"]))
def test_transpose_of_one_matrix_times_another_is_their_difference(m: int, n: int, base: float, layout: str) -> None:
    """R_m^T R_n = R_(n-m), backwards in time too: RoFormer, equation (16)."""

    def matrix(p: int) -> np.ndarray:
        return posref.rotation_matrix(np.asarray(p), 8, layout=layout, base=base)

    assert np.all(np.abs(matrix(m).T @ matrix(n) - matrix(n - m)) <= angle_error(m, n, n - m) + 8 * U)


@given(seed=seeds, p=positions, layout=layouts)
def test_inverse_undoes(seed: int, p: int, layout: str) -> None:
    """The same table both ways: c^2 + s^2 within 4u of 1, and 3 operations a lane twice."""
    x = normal(seed, 12)
    back = turned(turned(x, p, layout, rotary_dim=8), p, layout, rotary_dim=8, inverse=True)
    assert np.all(np.abs(back - x) <= (4 + 2 * 3) * U * np.abs(x).sum())


@given(seed=seeds, p=positions, layout=layouts)
def test_inverse_of_a_factor_multiplies_again(seed: int, p: int, layout: str) -> None:
    """The transpose, not the matrix inverse: twice the factor remains; it is rounded into the table, 2u more each way."""
    x, scaling = normal(seed, 8), YaRN(8.0, 64)
    factor = posref.rope_frequencies(8, base=10000.0, scaling=scaling)[1]
    back = turned(turned(x, p, layout, scaling=scaling), p, layout, scaling=scaling, inverse=True)
    assert np.all(np.abs(back - factor**2 * x) <= (4 + 2 * 3 + 2 * 2 + 2) * U * factor**2 * np.abs(x).sum())


@given(seed=seeds, p=positions)
def test_layouts_are_permutations_of_each_other(seed: int, p: int) -> None:
    """The same pairs in other lanes, bit for bit."""
    x = normal(seed, 8)
    mixed = np.concatenate([x[0::2], x[1::2]])
    half = turned(mixed, p, "half")
    np.testing.assert_array_equal(turned(x, p, "interleaved_to_half"), half)
    np.testing.assert_array_equal(turned(x, p, "interleaved"), np.stack([half[:4], half[4:]], -1).ravel())


@given(seed=seeds, shift=st.integers(0, 1000), form=st.sampled_from(["distance", "causal", "key"]))
def test_alibi_forms_agree_after_a_causal_softmax(seed: int, shift: int, form: str) -> None:
    """
    Rows of the forms differ by a constant, which the softmax drops.

    A bias is at most 1400 here and rounded once, as is its sum with a logit: each weight is off by 4 of these, then as in
    `permutation_equivariant`.
    """
    q, k, v = normal(seed, 3, 2, 6, 4)
    at = np.arange(6) + shift
    mask = at[:, None] >= at
    outputs = [posref.attention(q, k, v, bias=posref.alibi(at, at, heads=2, form=f), mask=mask) for f in ("distance", form)]
    largest = float(posref.alibi_slopes(2)[0]) * (shift + 6) + norm(q).max() * norm(k).max()
    of_weights = 2 * (4 * largest + 9) * U
    assert np.all(np.abs(outputs[0] - outputs[1]) <= 2 * (of_weights + 6 * U) * np.abs(v).max())


@given(seed=seeds)
def test_rope_makes_attention_depend_on_order(seed: int) -> None:
    """The counterpart of permutation equivariance: with positions, swapped tokens give another result."""
    q, k, v = normal(seed, 3, 6, 4)
    p = np.arange(6)

    def output(order: np.ndarray) -> np.ndarray:
        q_, k_ = (turned(x[order], p, "half") for x in (q, k))
        return posref.attention(q_, k_, v[order])

    swapped = np.asarray([1, 0, 2, 3, 4, 5])
    assert np.max(np.abs(output(swapped) - output(p)[swapped])) > 2**-10  # far beyond rounding, 2**-50


@given(seed=seeds, shift=st.floats(-30.0, 30.0))
def test_a_sink_is_a_key_whose_value_is_zero(seed: int, shift: float) -> None:
    """
    And a sink that is another logit times e**(s - t), Granite's sigmoid: within the rounding of two softmaxes.

    Logits are off by 6u of a product; weights by twice that, 2u for exp, a sum of 7 and a division; 7 products are summed.
    """
    q, k, v = normal(seed, 3, 2, 6, 4)
    sinks = normal(seed + 1, 2) + shift
    found = posref.attention(q, k, v, sinks=sinks)
    logits = posref.attention_logits(q, k)
    column = np.broadcast_to(sinks[:, None, None], (2, 6, 1))
    exps = np.exp(np.concatenate([logits, column], -1) - np.maximum(logits.max(-1, keepdims=True), column))
    with_a_key = (exps / exps.sum(-1, keepdims=True))[..., :-1] @ v
    share = 1 / (1 + np.exp(sinks[:, None] - np.log(np.sum(np.exp(logits), axis=-1))))
    allowed = 2 * (2 * (6 * U * norm(q).max() * norm(k).max() + 60 * U) + (2 + 7 + 1) * U + 7 * U) * np.abs(v).max()
    assert np.all(np.abs(found - with_a_key) <= allowed)
    assert np.all(np.abs(found - posref.attention(q, k, v) * share[..., None]) <= 2 * allowed)


@given(sinks=st.integers(0, 5), window=st.integers(1, 9), length=st.integers(1, 40), with_query=st.booleans())
def test_places_in_the_cache_of_what_a_lambda_window_keeps(sinks: int, window: int, length: int, with_query: bool) -> None:
    """StreamingLLM's distances are those of places in the cache."""
    reach = window - int(with_query)
    every = np.arange(length)
    options = {"num_sinks": sinks, "window": window, "counting": "with_query" if with_query else "without_query"}
    kept = every[posref.lambda_window(every[-1:], every, **options)[0]]
    assert len(kept) <= sinks + reach + 1
    in_cache = posref.positions.evicted(kept, reindex=True)
    np.testing.assert_array_equal(in_cache[-1] - in_cache, posref.streaming_llm_distances(every[-1:], kept, **options)[0])


@given(seed=seeds)
def test_masks_are_masks_of_attention(seed: int) -> None:
    """Of queries after a cache: what is masked has no influence, so the window alone gives the same to its last bits."""
    q, k, v = normal(seed, 2, 5, 4), normal(seed + 1, 2, 9, 4), normal(seed + 2, 2, 9, 3)
    p, at = np.arange(4, 9), np.arange(9)
    mask = posref.sliding_window(p, at, window=3, counting="with_query", sides="causal")
    whole = posref.attention(q, k, v, mask=mask)
    for i in range(5):
        near = posref.attention(q[:, i : i + 1], k[:, i + 2 : i + 5], v[:, i + 2 : i + 5])
        of_weights = 2 * (2 * 6 * U * norm(q).max() * norm(k).max() + (2 + 9 + 1) * U)
        assert np.all(np.abs(whole[:, i : i + 1] - near) <= 2 * (of_weights + 9 * U) * np.abs(v).max())


@given(left=st.integers(0, 300), bidirectional=st.booleans(), half=st.integers(2, 20), wider=st.integers(1, 200))
def test_t5_buckets_grow_with_distance(left: int, bidirectional: bool, half: int, wider: int) -> None:
    """Every bucket of a side is used, none is skipped backwards, and short distances have one each."""
    buckets, sided = 2 * half, half if bidirectional else 2 * half
    distances = np.arange(0, sided // 2 + wider + left + 1)
    got = posref.t5_buckets(-distances, bidirectional=bidirectional, num_buckets=buckets, max_distance=sided // 2 + wider)
    assert np.all(np.diff(got) >= 0)
    assert np.all(got[: sided // 2] == distances[: sided // 2])
    assert got[-1] == sided - 1
