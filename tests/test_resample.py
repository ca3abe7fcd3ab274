"""resample against PyTorch's interpolate on drawn sizes, and against JAX's resize; known rows."""

import random
from collections.abc import Iterator
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import posref
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths

MODES = {("linear", 1): "linear", ("linear", 2): "bilinear", ("linear", 3): "trilinear", ("cubic", 2): "bicubic"}
PLAIN: dict[str, Any] = {"align_corners": False, "antialias": False}


def drawn(seed: int, largest: int) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Draw a new grid, and the options, among them the old grid."""
    draw = random.Random(seed)
    method, antialias, align_corners = draw.choice(("linear", "cubic")), draw.random() < 0.4, draw.random() < 0.4
    axes = 2 if method == "cubic" or antialias or draw.random() < 0.7 else draw.choice((1, 3))
    most = largest if axes < 3 else 6
    old, new = (tuple(draw.randint(1, most) for _ in range(axes)) for _ in range(2))
    if axes == 2 and new[1] == 1:
        antialias = False  # PyTorch on a CPU would repeat the first row
    offset = None if align_corners or draw.random() < 0.6 else draw.choice((0.1, 0.1, 0.5, 0.9))
    if (antialias or method == "linear") and any(n == m for n, m in zip(old, new, strict=True)):
        offset = None  # PyTorch on a CPU would leave that axis alone
    options = {"method": method, "antialias": antialias, "align_corners": align_corners, "interpolate_offset": offset}
    return new, {**options, "old_size": old, "prefix": draw.choice((0, 1, 2))}


def interpolated(table: torch.Tensor, new: tuple[int, ...], options: dict[str, Any]) -> torch.Tensor:
    """Return what PyTorch makes of the table's cells, after the rows of its prefix."""
    old, prefix, offset = options["old_size"], options["prefix"], options["interpolate_offset"]
    grid = table[prefix:].reshape(1, *old, -1).movedim(-1, 1)
    where: dict[str, Any] = {"size": new}
    if offset is not None:
        where = {"scale_factor": tuple((m + offset) / n for n, m in zip(old, new, strict=True))}
    if options["antialias"]:
        where["antialias"] = True
    mode = MODES[options["method"], len(old)]
    found = torch.nn.functional.interpolate(grid, mode=mode, align_corners=options["align_corners"], **where)
    assert found.shape[2:] == new
    return torch.cat([table[:prefix], found.movedim(1, -1).reshape(prod(new), -1)])


def assert_inside(table: np.ndarray, new: tuple[int, ...], options: dict[str, Any], found: dict[str, np.ndarray]) -> None:
    """Assert that each of these arrays, by accuracy class, is the definition within that class."""
    params = {"size": list(new), **options, "old_size": list(options["old_size"])}
    true = golden("resample", {"table": table}, params)
    for name, values in found.items():
        assert np.all(np.abs(values - true["out"]) <= half_widths("resample", {"table": table}, params, name, true)["out"]), (
            name
        )


@pytest.mark.parametrize(
    ("seeds", "largest"),
    [(range(12), 9), pytest.param(range(100, 300), 37, marks=pytest.mark.thorough(dear=True))],
    ids=["12 small", "200"],
)
def test_it_is_the_interpolation_of_torch(seeds: range, largest: int) -> None:
    for seed in seeds:
        new, options = drawn(seed, largest)
        rows = options["prefix"] + prod(options["old_size"])
        table = np.random.default_rng(seed).standard_normal((rows, 1)).astype(np.float32).astype(np.float64)
        found = {
            "float64": interpolated(torch.asarray(table), new, options).numpy(),
            "angle32": interpolated(torch.asarray(table, dtype=torch.float32), new, options).double().numpy(),
        }
        assert_inside(table, new, options, found)
        ours = posref.resample(table, new, **options)
        assert_inside(table, new, options, {"float64": ours})
        np.testing.assert_array_equal(ours[: options["prefix"]], table[: options["prefix"]])


@pytest.mark.thorough
@pytest.mark.parametrize(("old", "new"), [((7, 5), (3, 9)), ((4, 6), (4, 2))])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_with_antialias_it_is_the_resize_of_jax(old: tuple[int, ...], new: tuple[int, ...], method: str) -> None:
    table = np.random.default_rng(1).standard_normal((prod(old), 3)).astype(np.float32).astype(np.float64)
    options = {**PLAIN, "antialias": True, "method": method, "old_size": old, "prefix": 0}
    found = jax.image.resize(jnp.asarray(table, dtype=jnp.float32).reshape(*old, 3), (*new, 3), method)
    assert_inside(table, new, options, {"angle32": np.asarray(found, dtype=np.float64).reshape(-1, 3)})


def known() -> Iterator[tuple[str, dict[str, Any], list[float]]]:
    """Yield a method, options, and the first cells of 1 2 4 8 on a row of three."""
    yield "linear", PLAIN, [7 / 6, 3, 22 / 3]
    yield "linear", {**PLAIN, "align_corners": True}, [1, 3, 8]
    yield "linear", {**PLAIN, "antialias": True}, [1.3, 3, 6.8]
    yield "cubic", PLAIN, [1.1087963, 2.71875, 7.4606481]


@pytest.mark.parametrize(("method", "options", "row"), list(known()))
def test_known_rows(method: Any, options: dict[str, Any], row: list[float]) -> None:
    table = np.asarray([[1.0], [2.0], [4.0], [8.0]])
    found = posref.resample(table, (1, 3), old_size=(1, 4), prefix=0, method=method, **options)
    np.testing.assert_allclose(found[:, 0], row, atol=5e-8)


def test_a_kernel_of_exact_numbers_costs_no_more_than_its_sum() -> None:
    """From 9 cells to 4 all weights are short, and nobody multiplies cells into the terms of their polynomial."""
    table = np.random.default_rng(5).integers(-64, 64, (9, 3)) / 16
    params = {"method": "cubic", **PLAIN, "old_size": [9], "prefix": 0, "size": [4]}
    weights = golden("resample", {"table": np.eye(9)}, params)["out"]
    width = half_widths("resample", {"table": table}, params, "angle32", golden("resample", {"table": table}, params))["out"]
    inner = slice(1, 3)  # which read no cell twice, as those at the border do
    sizes = (np.abs(weights) @ np.abs(table))[inner]
    assert np.all(width[inner] <= (1 + 4) * 2.0**-24 * sizes * 1.001)  # a rounding a product, and four of the sum
    assert np.all(width > 0)
