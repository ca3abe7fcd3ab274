"""Rotations by learned matrices: against the authors' formulas in PyTorch, closed forms, and the bounds of the exponential."""

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import posref
from posref.backends.bounds import bounds
from posref.backends.exact import correctly_rounded, exact, precision
from posref.conformance import check
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths
from posref.core.matrices import cayley_transform, skew_exponential, skew_symmetric

RNG = np.random.default_rng(5)


def single(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Return normal numbers that float32 holds."""
    return (RNG.standard_normal(shape) * scale).astype(np.float32).astype(np.float64)


def assert_within(found: torch.Tensor, op: str, inputs: dict[str, Any], params: dict[str, Any]) -> None:
    """Assert that float32 values of PyTorch are within class angle32."""
    true = golden(op, inputs, params)
    width = half_widths(op, inputs, params, "angle32", true)["out"]
    assert found.dtype == torch.float32
    assert np.all(np.abs(found.detach().numpy() - true["out"]) <= width)


def half_width(op: str, inputs: dict[str, Any], **params: Any) -> np.ndarray:
    """Return how far NumPy's float64 values may be from the true ones."""
    return half_widths(op, inputs, params, "float64", golden(op, inputs, params))["out"].astype(np.float64)


# ---- the authors' formulas -----------------------------------------------------------


@pytest.mark.parametrize(("blocks", "n"), [(8, 8), (4, 16), (3, 5)])
def test_liere_is_the_authors(blocks: int, n: int) -> None:
    """StanfordMIMI/LieRE, models/rope_vit.py: an image in [0, 1], a class token at 0, lanes left over."""
    generators = (RNG.uniform(0, 2 * math.pi, (2, blocks, n, n))).astype(np.float32).astype(np.float64)
    grid = list(itertools.product((0.0, 0.5, 1.0), (0.0, 1.0)))
    positions, x = np.asarray([(0.0, 0.0), *grid]).T, single(7, 64)
    raw = torch.tensor(generators, dtype=torch.float32)
    upper = torch.triu(raw, diagonal=1) - 0.5
    bases = upper - torch.transpose(upper, -1, -2)
    at = torch.tensor(positions.T, dtype=torch.float32)
    exponent = torch.sum(at.reshape(7, 2, 1, 1, 1) * bases, dim=-4)
    rotations = torch.matrix_exp(exponent)
    lanes = torch.tensor(x, dtype=torch.float32)
    states = lanes[:, : blocks * n].reshape(7, blocks, n, 1)
    turned = torch.cat([torch.matmul(rotations, states).flatten(start_dim=-3), lanes[:, blocks * n :]], dim=-1)
    arrays = {"positions": positions, "generators": generators}
    assert_within(turned, "liere", {"x": x, **arrays}, {})
    assert torch.equal(rotations[0], torch.eye(n).expand(blocks, n, n))


def test_cayley_is_pytorchs_orthogonal() -> None:
    """Its lower triangle A, halved, is the upper triangle of S: (I - A/2)^-1 (I + A/2)."""
    layer = torch.nn.Linear(6, 6, bias=False)
    orthogonal = torch.nn.utils.parametrizations.orthogonal(layer, orthogonal_map="cayley", use_trivialization=False)
    parameter = torch.tensor(single(6, 6, scale=0.5), dtype=torch.float32)
    orthogonal.parametrizations.weight.original = torch.nn.Parameter(parameter)
    skew = parameter.double().numpy().T / 2
    assert_within(orthogonal.weight, "cayley", {"skew": skew}, {})


@pytest.mark.parametrize("form", ["conjugate", "product"])
def test_cayley_string_is_its_equations(form: str) -> None:
    """Equations (5), (9) and (10) with dense matrices: P RoPE P^T, or RoPE P."""
    x, skew, frequencies, positions = (
        single(4, 6),
        single(6, 6, scale=0.2),
        single(2, 3),
        np.asarray([[0, 1, 5, 9], [2, 0, 7, 3]]),
    )
    s = torch.tensor(np.triu(skew, 1) - np.triu(skew, 1).T, dtype=torch.float32)
    one = torch.eye(6)
    p = torch.linalg.solve(one + s, one - s, left=False)
    angles = torch.tensor(positions.T, dtype=torch.float32) @ torch.tensor(frequencies, dtype=torch.float32)
    pairs = torch.stack([torch.stack([angles.cos(), -angles.sin()], -1), torch.stack([angles.sin(), angles.cos()], -1)], -2)
    rope = torch.stack([torch.block_diag(*of_token) for of_token in pairs])
    matrix = p @ rope @ p.T if form == "conjugate" else rope @ p
    found = (matrix @ torch.tensor(x, dtype=torch.float32)[..., None])[..., 0]
    inputs = {"x": x, "positions": positions, "skew": skew, "frequencies": frequencies}
    assert_within(found, "cayley_string", inputs, {"form": form})


@pytest.mark.parametrize("n", [3, 4, 7, 8])
def test_circulant_string_is_the_exponential_and_the_fft(n: int) -> None:
    """Equation (11) with a matrix exponential, and theorem 3.5 by fast Fourier transforms."""
    x, c, positions = single(3, n), single(2, n, scale=0.2), np.asarray([[0, 1, 5], [2, 0, 7]])
    inputs = {"x": x, "positions": positions, "coefficients": c[:, None]}
    of_lanes, of_c, at = (torch.tensor(v, dtype=torch.float32) for v in (x, c, positions))
    i, j = np.ogrid[:n, :n]
    circulant = of_c[:, (i - j) % n]
    generators = circulant - circulant.mT
    exponent = torch.einsum("at,aij->tij", at, generators)
    assert_within((torch.matrix_exp(exponent) @ of_lanes[..., None])[..., 0], "circulant_string", inputs, {})
    eigenvalues = torch.fft.fft(of_c) - torch.fft.fft(of_c).conj()
    by_fft = torch.fft.ifft(torch.exp(at.T.to(torch.complex64) @ eigenvalues) * torch.fft.fft(of_lanes)).real
    assert_within(by_fft, "circulant_string", inputs, {})


# ---- closed forms ------------------------------------------------------------------------


def test_in_two_dimensions_it_turns_a_pair() -> None:
    """LieRE of pairs is RoPE-Mixed backwards; Cayley's is a turn by -2 arctan of the entry."""
    x, theta, positions = single(3, 6), single(2, 3), np.asarray([[0, 3, 8], [2, 7, 1]])
    generators = np.zeros((2, 3, 2, 2))
    generators[..., 0, 1] = theta
    given, backwards = {"x": x, "positions": positions}, {"layout": "interleaved", "inverse": True}
    apart = posref.liere(x, positions, generators) - posref.mixed_rope(x, positions, theta, **backwards)
    allowed = half_width("liere", given | {"generators": generators}, inverse=False)
    allowed = allowed + half_width("mixed_rope", given | {"frequencies": theta}, **backwards)
    assert np.all(np.abs(apart) <= allowed)
    skew = np.asarray([[0.0, 0.75], [0.0, 0.0]])
    turn = np.asarray([[0.28, -0.96], [0.96, 0.28]])  # cosine and sine of 2 arctan(3/4), each off by its own rounding
    assert np.all(np.abs(posref.cayley(skew) - turn) <= half_width("cayley", {"skew": skew}) + 2.0**-54)


def test_without_a_basis_cayley_string_is_mixed_rope() -> None:
    x, theta, positions = single(3, 6), single(2, 3), np.asarray([[0, 3, 8], [2, 7, 1]])
    found = posref.cayley_string(x, positions, np.zeros((6, 6)), theta, form="conjugate")
    np.testing.assert_array_equal(found, posref.mixed_rope(x, positions, theta, layout="interleaved"))


def test_logits_of_both_forms_agree_with_the_other_basis() -> None:
    """Within 450 roundoffs: chosen, and less than the half-widths of the four vectors would allow."""
    x, skew, theta, positions = single(2, 6), single(6, 6, scale=0.2), single(2, 3), np.asarray([[3, 8], [7, 1]])
    q, k = posref.cayley_string(x, positions, skew, theta, form="conjugate")
    one, two = posref.cayley_string(x, positions, -skew, theta, form="product")
    assert q @ k == pytest.approx(one @ two, rel=0, abs=1e-13)


# ---- the exponential and its bounds --------------------------------------------------


def by_eigenvectors(a: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(1j * a)
    return ((vectors * np.exp(-1j * values)[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))).real


def by_torch(a: np.ndarray) -> np.ndarray:
    return torch.matrix_exp(torch.asarray(a)).numpy()


WAYS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (skew_exponential, by_torch, by_eigenvectors)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize(("dtype", "accuracy"), [("float64", "float64"), ("float32", "angle32")])
def test_exponentials_keep_within_their_bounds(n: int, dtype: str, accuracy: str) -> None:
    """By Taylor, by PyTorch and by eigenvectors, at norms from 2^-8 to 2^16; and the bounds are not idle."""
    worst = 0.0
    for scale in 2.0 ** np.arange(-8, 17, 4):
        a = skew_symmetric(single(3, n, n, scale=scale))
        with precision(300):
            true = correctly_rounded(exact.skew_exponential(exact.asarray(a, dtype=exact.float64)))
        system = bounds(accuracy)
        _, width, _ = system.skew_exponential(system.asarray(a, dtype=system.float64)).parts
        for way in WAYS:
            error = np.abs(way(a.astype(dtype)).astype(np.float64) - true)
            assert np.all(error <= width + 2.0**-53), (way, scale)
            worst = max(worst, float(np.max(error / width)))
    assert worst > 2e-3


@pytest.mark.parametrize("accuracy", ["float64", "angle32"])
def test_errors_of_a_matrix_move_its_exponential_by_no_more(accuracy: str) -> None:
    """As far as the bound of an exponent that is off says."""
    system = bounds(accuracy)
    for scale in (0.1, 3.0, 100.0):
        a, off = skew_symmetric(single(4, 4, scale=scale)), skew_symmetric(single(4, 4, scale=2.0**-12))
        given = system.array(a, np.abs(off), system.float64)
        _, width, _ = system.skew_exponential(given).parts
        assert np.all(np.abs(by_eigenvectors(a + off) - by_eigenvectors(a)) <= width)
        assert np.all(width < 0.5)


@pytest.mark.thorough(dear=True)
def test_the_derivative_keeps_within_its_bounds() -> None:
    """That of PyTorch's backward pass in float32, and of JAX's through the squarings."""
    worst = 0.0
    for n, scale in itertools.product((2, 3, 6), (2.0**-6, 1.0, 2.0**6)):
        a, g = skew_symmetric(single(n, n, scale=scale)), single(n, n)
        system = bounds("angle32")
        given = [system.asarray(v, dtype=system.float64) for v in (a, g)]
        with precision(300):
            balls = [exact.asarray(v, dtype=exact.float64) for v in (a, g)]
            true = correctly_rounded(exact.skew_exponential_adjoint(*balls))
        _, width, _ = system.skew_exponential_adjoint(*given).parts
        leaf = torch.tensor(a, dtype=torch.float32, requires_grad=True)
        (by_autograd,) = torch.autograd.grad(torch.matrix_exp(leaf), leaf, torch.tensor(g, dtype=torch.float32))
        (through_squarings,) = jax.vjp(skew_exponential, jnp.asarray(a, dtype=jnp.float32))[1](
            jnp.asarray(g, dtype=jnp.float32)
        )
        for found in (by_autograd.numpy(), np.asarray(through_squarings)):
            error = np.abs(found - true)
            assert np.all(error <= width), (n, scale)
            worst = max(worst, float(np.max(error / width)))
    assert worst > 1e-3


def test_a_zero_matrix_is_exact() -> None:
    """So a class token is not rotated, in any class."""
    for accuracy in ("float64", "angle32", "low-bfloat16"):
        system = bounds(accuracy)
        found, width, _ = system.skew_exponential(system.asarray(np.zeros((2, 3, 3)), dtype=system.float64)).parts
        np.testing.assert_array_equal(found, np.broadcast_to(np.eye(3), (2, 3, 3)))
        assert not np.any(width)
    assert np.array_equal(skew_exponential(np.zeros((3, 3))), np.eye(3))


@pytest.mark.parametrize("n", [1, 2, 5, 16, 64])
def test_the_elimination_needs_no_pivots(n: int) -> None:
    """Against a solver with pivots, for large S too: both errors are within a few roundoffs of what the norm of S allows."""
    for scale in (0.05, 1.0, 30.0):
        s = skew_symmetric(single(n, n, scale=scale))
        one = np.eye(n)
        solved = np.linalg.solve(one + s, one - s)
        size = 3 * n**2 * (1 + np.sum(s**2)) * 2.0**-53  # Golub and Van Loan: |L||U| is at most n (1 + |S|^2)
        assert np.all(np.abs(cayley_transform(s) - solved) <= 2 * size)


def test_far_positions_stay_finite() -> None:
    """Every int32 position at generators of norm 2^16: still orthogonal to what 2^48 roundoffs leave."""
    generators = np.asarray([[[[0.0, 2.0**16], [0.0, 0.0]]]])
    r = posref.liere_rotations(np.asarray([2**31 - 1]), generators)
    assert np.all(np.abs(r @ np.swapaxes(r, -1, -2) - np.eye(2)) < 2.0**48 * 2.0**-50)


# ---- ways to the Cayley transform ----------------------------------------------------


SOLVERS = {
    "inverse last": lambda xp, a, b: b @ xp.linalg.inv(a),
    "inverse first": lambda xp, a, b: xp.linalg.inv(a) @ b,
    "solved": lambda xp, a, b: xp.linalg.solve(a, b),
    "transposed": lambda xp, a, b: xp.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2),
    "twice the inverse": lambda xp, a, b: 2 * xp.linalg.inv(a) - (a + b) / 2,
}


def with_solver(xp: Any, solver: str) -> SimpleNamespace:
    """Return both operations on NumPy or torch, with one way to (I - S)(I + S)^-1."""

    def cayley(skew: Any, /, *, dtype: Any = None) -> Any:
        upper = xp.triu(skew, 1)
        s, one = upper - upper.swapaxes(-1, -2), xp.eye(skew.shape[-1], dtype=skew.dtype)
        found = SOLVERS[solver](xp, one + s, one - s)
        return found if dtype is None else xp.asarray(found, dtype=dtype)

    def cayley_string(x: Any, positions: Any, skew: Any, frequencies: Any, /, *, form: str) -> Any:
        if skew.ndim > 2 or frequencies.ndim > 2 or positions.ndim != 2:
            raise NotImplementedError
        basis, d = cayley(skew), 2 * frequencies.shape[-1]
        first = basis.swapaxes(-1, -2) if form == "conjugate" else basis
        angles = (xp.asarray(positions, dtype=frequencies.dtype)[..., None] * frequencies[:, None]).sum(0)
        cos, sin, y = xp.cos(angles), xp.sin(angles), x @ first.swapaxes(-1, -2)
        a, b = y[..., 0:d:2], y[..., 1:d:2]
        pairs = xp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(*a.shape[:-1], d)
        rotated = xp.concatenate([pairs, y[..., d:]], -1)
        return rotated @ basis.swapaxes(-1, -2) if form == "conjugate" else rotated

    library, dtypes = xp.__name__, ("float32", "float64")
    return SimpleNamespace(cayley=cayley, cayley_string=cayley_string, backend=library, dtypes=dtypes, __name__=solver)


@pytest.mark.parametrize(
    "solver", [pytest.param(s, marks=[] if s == "inverse first" else [pytest.mark.thorough]) for s in SOLVERS]
)
@pytest.mark.parametrize("library", [np, torch], ids=["numpy", "torch"])
def test_every_way_to_the_cayley_transform_is_inside(library: Any, solver: str) -> None:
    report = check(with_solver(library, solver), experiments=0)
    wrong = [(c.id, c.dtype, c.message) for c in report.failures if c.verdict != "selective"]
    assert not wrong, wrong[:5]
    for operation in report.operations:
        assert operation.counts["pass"] > 8


def test_a_transform_of_half_the_matrix_is_outside() -> None:
    """The bounds of all ways leave no room for the transform of S / 2."""
    right = with_solver(np, "solved")
    half = SimpleNamespace(cayley=lambda skew, /, *, dtype=None: right.cayley(skew / 2, dtype=dtype), __name__="half")
    assert len(check(half, op="cayley", experiments=0).failures) > 5
