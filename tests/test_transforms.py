"""Compilers, gradients and vectorising maps: every definition under each of them is the same function."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch
from conftest import Library
from sample import smoke
from sampling import few

import posref
from posref import backends
from posref.backends.bounds import bounds
from posref.backends.exact import evaluate, exact
from posref.conformance.calls import bind, takes_dtype
from posref.scaling import DynamicNTK, Llama3, NTKAware, YaRN
from posref.spec import REGISTRY

LAYOUTS = ("half", "interleaved", "interleaved_to_half")
TORCH, JAX = Library("torch", backends.load("torch")), Library("jax", backends.load("jax"))
PLACES = np.asarray([0, 1, 7, 255, 4097])
FREQUENCIES = 10000.0 ** (-np.arange(3) / 3)
# name -> function of q and k (B, H, T, D), integer positions (T,) and an 8 x 3 table
SOME = {
    **{
        f"rope {layout}": lambda q, k, p, t, layout=layout: posref.rope(q, p, layout=layout, base=10000.0) for layout in LAYOUTS
    },
    "partial": lambda q, k, p, t: posref.rope(q, p, layout="half", base=10000.0, rotary_dim=4),
    "YaRN": lambda q, k, p, t: posref.rope(q, p, layout="half", base=10000.0, scaling=YaRN(4.0, 64)),
    "YaRN not truncated": lambda q, k, p, t: posref.rope(
        q, p, layout="half", base=10000.0, scaling=YaRN(4.0, 64, truncate=False, mscale=0.7, mscale_all_dim=1.0)
    ),
    "Llama3": lambda q, k, p, t: posref.rope(q, p, layout="interleaved", base=5e5, scaling=Llama3(8.0, 64)),
    "NTKAware": lambda q, k, p, t: posref.rope(q, p, layout="half", base=10000.0, scaling=NTKAware(4.0)),
    "DynamicNTK": lambda q, k, p, t: posref.rope(q, p, layout="half", base=10000.0, scaling=DynamicNTK(4.0, 64), length=500),
    "sinusoidal": lambda q, k, p, t: posref.sinusoidal(p, 6, layout="interleaved"),
    "alibi": lambda q, k, p, t: posref.alibi(p, p, heads=3, form="distance"),
    "t5_bias": lambda q, k, p, t: posref.t5_bias(p, p, t, bidirectional=True),
    "shaw": lambda q, k, p, t: posref.shaw_scores(
        q, k, t[:7, :1] + q[0, 0, :1, :], p, p, left=4, right=2, order="key_minus_query"
    ),
    "attention": lambda q, k, p, t: posref.attention(
        q, k, k, bias=posref.t5_bias(p, p, t, bidirectional=False), mask=p[:, None] >= p
    ),
}


def arrays(library: Library, dtype: str = "float32") -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    q, k, table = (rng.standard_normal(shape) for shape in ((2, 3, 5, 8), (2, 3, 5, 8), (8, 3)))
    return (*(library.array(x, dtype) for x in (q, k)), library.array(PLACES), library.array(table, dtype))


# ---- compilers ---------------------------------------------------------


class Graphs(list[Any]):
    """A compiler that lists the graphs that it is given."""

    def __call__(self, graph: Any, _: Any) -> Callable[..., Any]:
        self.append(graph)
        return graph.forward  # type: ignore[no-any-return]


@pytest.fixture
def graphs() -> Graphs:
    torch.compiler.reset()
    return Graphs()


@pytest.mark.thorough
def test_torch_compile_with_dynamic_shapes(graphs: Graphs) -> None:
    """One graph for every length, and a gradient through it."""

    def function(x: Any, p: Any) -> Any:
        return posref.rope(x, p, layout="half", base=10000.0, rotary_dim=4, scaling=YaRN(4.0, 64))

    function(torch.ones(1, 8), torch.arange(1))  # the namespace of a library is looked up once, in a call before
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=graphs)
    for length in (5, 6, 9):
        x = torch.randn(2, 3, length, 8)
        p = torch.arange(length)
        assert torch.equal(compiled(x, p), function(x, p))
    assert len(graphs) == 1


@pytest.mark.thorough
def test_torch_compile_and_gradients() -> None:
    torch.compiler.reset()
    q, _, p, _ = arrays(TORCH)
    function = SOME["YaRN"]
    gradients = []
    for f in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
        x = q.clone().requires_grad_()
        f(x, None, p, None).square().sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


@few(1, "name", ["rope half", "Llama3", "alibi", "attention"])
def test_torch_compile_in_half_precision(name: str) -> None:
    torch.compiler.reset()
    q, k, p, t = arrays(TORCH, "bfloat16")

    def function(q: Any, k: Any, p: Any, t: Any) -> Any:
        return posref.alibi(p, p, heads=3, form="distance", dtype=q.dtype) if name == "alibi" else SOME[name](q, k, p, t)

    expected = function(q, k, p, t)
    assert expected.dtype == q.dtype
    assert torch.equal(torch.compile(function, fullgraph=True, backend="eager")(q, k, p, t), expected)


def test_a_length_may_be_an_array(graphs: Graphs) -> None:
    """One graph serves every length, in both libraries, and balls and bounds know it too."""

    def function(x: Any, p: Any, length: Any) -> Any:
        return posref.rope(x, p, layout="half", base=10000.0, scaling=DynamicNTK(4.0, 64), length=length)

    q, _, p, _ = arrays(TORCH)
    of_jax = [JAX.array(TORCH.host(a), dtype) for a, dtype in ((q, "float32"), (p, None))]
    function(q, p, torch.tensor(1))
    compiled, jitted = torch.compile(function, fullgraph=True, backend=graphs), jax.jit(function)
    balls = [exact.asarray(TORCH.host(a), dtype=dtype) for a, dtype in ((q, exact.float64), (p, exact.int64))]
    lengths = (3, 64, 65, 5000)
    results = {length: compiled(q, p, torch.tensor(length)) for length in lengths}
    assert len(graphs) == 1
    for length in lengths:
        expected = function(q, p, length)
        assert torch.equal(function(q, p, torch.tensor(length)), expected)
        assert torch.equal(results[length], expected)
        # float32 frequencies: within 4 roundoffs (a power's 3, and one), times positions up to 4097, times pairs up to 4
        apart = np.abs(np.asarray(jitted(*of_jax, length)) - TORCH.host(expected))
        assert np.all(apart <= 4 * 2.0**-24 * 4097 * 4)
        true = [evaluate(lambda at=at: [function(*balls, at)])[0] for at in (length, exact.asarray(length))]
        np.testing.assert_array_equal(*true)
        bounded = bounds("float64")
        at = function(bounded.asarray(TORCH.host(q)), bounded.asarray(TORCH.host(p)), bounded.asarray(length))
        assert np.all(np.abs(at.parts[0] - true[0]) <= at.parts[1])


def test_a_mask_that_is_not_looked_at() -> None:
    """The same positions, under compilers too, where values cannot be looked at."""
    mask = np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]])

    def counted(mask: Any) -> Any:
        return posref.positions.from_mask(mask, padding=0, check=False)

    expected = posref.positions.from_mask(mask, padding=0).tolist()
    assert counted(mask).tolist() == jax.jit(counted)(mask).tolist() == expected
    counted(torch.asarray(mask))
    assert torch.compile(counted, fullgraph=True, backend="eager")(torch.asarray(mask)).tolist() == expected
    with pytest.raises(ValueError, match="must be boolean or integer"):
        counted(mask.astype(np.float64))


UNSEEN: dict[str, tuple[Any, Any]] = {  # functions of positions that look at values, and an array for each
    "decode": (lambda n, **more: posref.positions.decode(n, 3, **more), [7, 3]),
    "evicted": (lambda p, **more: posref.positions.evicted(p, reindex=False, **more), [0, 1, 900, 901]),
    "evicted, reindexed": (lambda p, **more: posref.positions.evicted(p, reindex=True, **more), [0, 1, 900, 901]),
    "require_in_range": (lambda p, **more: posref.positions.require_in_range(p, 8, **more), [3, 0, 7]),
    "require_slots": (lambda s, **more: posref.positions.require_slots(s, 8, **more), [3, -1, 7, -1]),
    "tree": (lambda p, **more: posref.positions.tree(p[0], p[1:], **more), [7, -1, 0, 0]),
    "randomised": (lambda p, **more: posref.positions.randomised(p, length=3, maximum=9, **more), [5, 8, 2, 0]),
}


@few(1, "name", UNSEEN)
def test_values_that_are_not_looked_at(name: str) -> None:
    """With check=False functions of positions run under jit, compile and export, with the same positions."""
    function, values = UNSEEN[name]
    array = np.asarray(values)
    expected = function(array).tolist()

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x, check=False)

    of_torch = torch.asarray(array)
    assert jax.jit(lambda x: function(x, check=False))(array).tolist() == function(array, check=False).tolist() == expected
    assert torch.compile(Module(), fullgraph=True, backend="eager")(of_torch).tolist() == expected
    assert torch.export.export(Module(), (of_torch,)).module()(of_torch).tolist() == expected


def test_torch_export() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
            return posref.rope(x, p, layout="interleaved", base=10000.0)

    q, _, p, _ = arrays(TORCH)
    assert torch.equal(torch.export.export(Module(), (q, p)).module()(q, p), Module()(q, p))


# ---- vectorising maps ---------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SOME if name not in ("shaw", "attention")])
def test_torch_vmap_of_a_batch_is_the_batch(name: str) -> None:
    q, k, p, t = arrays(TORCH)
    one_by_one = torch.stack([SOME[name](q[i], k[i], p, t) for i in range(2)])
    assert torch.equal(torch.func.vmap(lambda q, k: SOME[name](q, k, p, t))(q, k), one_by_one)


def test_every_operation_is_mapped_over_each_of_its_real_arrays() -> None:
    """By PyTorch's vmap, which has no rule for some functions; a batch of two has what one call has."""
    for op, record in REGISTRY.items():
        call = smoke(op).calls[0]
        given = {n: TORCH.array(x, None if x.dtype.kind in "biu" else "float64") for n, x in call.inputs.items()}

        def of_one(x: torch.Tensor, name: str, op: str = op, given: Any = given, options: Any = call.params) -> torch.Tensor:
            positional, keywords = bind(op, {**given, name: x}, options)
            out = REGISTRY[op].function(*positional, **keywords, **({"dtype": torch.float64} if takes_dtype(op) else {}))
            return out[0] if isinstance(out, tuple) else out

        for name in (name for name in given if record.arrays[name].kind == "real"):
            out = torch.func.vmap(lambda x, name=name: of_one(x, name))(torch.stack([given[name]] * 2))
            # chosen: a product of a batch may sum in another order
            torch.testing.assert_close(out[1], of_one(given[name], name), rtol=1e-13, atol=1e-13, equal_nan=True)


# ---- gradients ---------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, {"scaling": YaRN(4.0, 64)}, {"rotary_dim": 6}], ids=["whole", "factor", "partial"])
def test_the_vjp_of_rope_is_its_inverse(dtype: str, layout: str, options: dict[str, Any]) -> None:
    """Bit for bit, in half precision too: both sum in float32 and round once."""
    q, k, p, _ = arrays(TORCH, dtype)
    options = {"layout": layout, "base": 10000.0} | options
    _, pull = torch.func.vjp(lambda x: posref.rope(x, p, **options), q)
    assert torch.equal(pull(k)[0], posref.rope(k, p, inverse=True, **options))
    _, pull = torch.func.vjp(lambda x: posref.rope(x, p, inverse=True, **options), q)
    assert torch.equal(pull(k)[0], posref.rope(k, p, **options))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_jvp_of_rope_rotates_the_tangent(layout: str) -> None:
    q, k, p, _ = arrays(TORCH)
    function = SOME[f"rope {layout}"]
    out, tangent = torch.func.jvp(lambda x: function(x, None, p, None), (q,), (k,))
    assert torch.equal(out, function(q, None, p, None))
    assert torch.equal(tangent, function(k, None, p, None))


@few(1, "name", ["rope half", "YaRN", "partial", "attention", "t5_bias"])
def test_torch_gradcheck(name: str) -> None:
    """
    Against difference quotients, in float64, with the tolerances of gradcheck itself; forward mode and batches too.
    """
    q, k, p, t = (x[:1, :, :3] if x.ndim == 4 else x for x in arrays(TORCH, "float64"))
    leaves = [x.clone().requires_grad_() for x in (q, k, t)]
    p = p[:3]
    assert torch.autograd.gradcheck(
        lambda q, k, t: SOME[name](q, k, p, t), leaves, check_forward_ad=True, check_batched_grad=True
    )


def test_torch_gradcheck_of_positions_and_frequencies() -> None:
    frequencies = torch.tensor(FREQUENCIES, requires_grad=True)
    positions = torch.tensor([0.0, 1.0, 2.5, -3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p, f: posref.rope_table(p, f, attention_factor=1.5), (positions, frequencies))
    assert torch.autograd.gradcheck(lambda p: posref.sinusoidal(p, 6, layout="sin_cos"), (positions,))


def gradients_of(library: Library, function: Callable[..., Any], *arrays: Any) -> list[np.ndarray]:
    """Return the gradients of a sum in all of its arrays."""
    if library is JAX:
        found = jax.jit(jax.grad(function, argnums=tuple(range(len(arrays)))))(*arrays)
    else:
        leaves = [array.requires_grad_() for array in arrays]
        found = torch.autograd.grad(function(*leaves), leaves)
    return [library.host(gradient) for gradient in found]


libraries = pytest.mark.parametrize("library", [TORCH, JAX], ids=["torch", "jax"])


@libraries
def test_learned_frequencies_get_their_gradient(library: Library) -> None:
    """d/df of the sum of sin(p f) is the sum of p cos(p f)."""
    positions, given_frequencies = np.asarray([0, 1, 2, 5]), np.asarray([1.0, 0.25, 0.0625])
    p, f = library.array(positions), library.array(given_frequencies, "float32")
    (gradient,) = gradients_of(library, lambda f: posref.rope_table(p, f)[1].sum(), f)
    expected = np.sum(positions[:, None] * np.cos(positions[:, None] * given_frequencies), axis=0)
    # sum of |p| is 8; each cosine within 4 roundoffs and that of an exact angle; each product and each of 3 sums
    # rounded
    assert np.all(np.abs(gradient - expected) <= 8 * (4 + 1 + 3) * 2.0**-24)


@libraries
def test_the_gradient_of_a_table_counts_its_rows(library: Library) -> None:
    p = library.array(np.asarray([0, 1, 2, 4, 60]))
    buckets = library.host(posref.t5_buckets(p[None, :] - p[:, None], bidirectional=True, num_buckets=8))
    expected = np.broadcast_to(np.bincount(buckets.ravel(), minlength=8)[:, None], (8, 3))
    table = library.array(np.ones((8, 3)), "float32")
    (gradient,) = gradients_of(library, lambda table: posref.t5_bias(p, p, table, bidirectional=True).sum(), table)
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.thorough
@libraries
def test_a_masked_row_has_a_gradient_of_zero_and_no_nan(library: Library) -> None:
    q, k, p, _ = arrays(library)
    mask = p[:, None] > p  # the first query may attend to nothing
    of_q, of_k = gradients_of(library, lambda q, k: posref.attention(q, k, k, mask=mask).sum(), q, k)
    assert np.all(np.isfinite(of_q))
    assert np.all(np.isfinite(of_k))
    assert np.all(of_q[..., 0, :] == 0)  # attends to nothing
    assert np.all(of_k[..., -1, :] == 0)  # nobody attends to it


def test_alibi_has_the_slopes_as_gradient_of_positions() -> None:
    p = torch.tensor([5.0], requires_grad=True)
    bias = posref.alibi(p, torch.tensor([2.0]), heads=4, form="causal")
    for head, slope in enumerate(posref.alibi_slopes(4)):
        gradient = torch.autograd.grad(bias[head, 0, 0], p, retain_graph=True)[0]
        assert gradient.item() == -slope
