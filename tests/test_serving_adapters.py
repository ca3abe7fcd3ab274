"""Adapters of libraries that serve models: that they find a source tree, and ask the functions in it, not a copy."""

from pathlib import Path
from typing import Any

import pytest
import torch
from fake_libraries import TREES, imported

import posref
from posref.conformance import Unsupported
from posref.conformance.adapters import _triton as triton


@pytest.mark.parametrize("sign", [1, -1], ids=["as", "negated"])
@pytest.mark.parametrize("name", [n for n in TREES if n != "liger_kernel"])  # which imports transformers: test_both_sides.py
def test_the_adapter_asks_a_source_tree_on_the_path(name: str, sign: int, tmp_path: Path) -> None:
    x, positions = torch.linspace(-2, 2, 3 * 8).reshape(3, 8), torch.tensor([0, 5, 9])
    with imported(name, tmp_path, sign) as adapter:
        layout = "interleaved" if name == "rotary_embedding_torch" else "half"
        if hasattr(adapter, "rope"):
            found = adapter.rope(x, positions, layout=layout, base=1e4)
        else:
            found = adapter.apply_rope(x, *posref.rope_cos_sin(positions, 8, base=1e4), layout=layout)
    assert torch.allclose(found, sign * posref.rope(x, positions, layout=layout, base=1e4), atol=1e-5)
    assert adapter.PACKAGE.replace("-", "_") == name.removesuffix("_triton")


ROTATIONS = {
    "as": lambda x: x,
    "the last head stays": lambda x: torch.where(torch.arange(3)[:, None] < 2, x, 0),
    "the heads in another order": lambda x: x.flip(2),
}


@pytest.mark.parametrize("kind", ROTATIONS)
def test_triton_kernels_are_asked_for_several_heads(kind: str) -> None:
    x = torch.linspace(-2, 2, 3 * 8).reshape(3, 8)
    assert torch.equal(triton.of_heads(x, ROTATIONS[kind]), x) == (kind == "as")
    with pytest.raises(Unsupported):
        triton.of_heads(x[:0], lambda heads: heads)


def test_a_table_for_triton_kernels_has_a_row_before_those_of_the_tokens() -> None:
    x, table = torch.zeros(2, 3, 8), torch.arange(12.0).reshape(3, 4).cos()
    rows = triton.rows_of(table, x)
    assert torch.equal(rows[1:], table.repeat(2, 1))
    assert not (rows[0] == table).any()


def test_triton_kernels_of_flat_heads_get_four_of_queries_and_two_of_keys() -> None:
    x = torch.linspace(-2, 2, 9 * 8, requires_grad=True).reshape(9, 8)
    shapes = []

    def kept(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shapes.append((q.shape, k.shape))
        return q, k

    found = triton.of_flat(x, kept)
    assert torch.equal(found, x)
    assert not found.requires_grad
    assert shapes == [((9, 32), (9, 16))]
    assert not torch.equal(triton.of_flat(x, lambda q, k: (q, k.roll(8, 1))), x)
    with pytest.raises(Unsupported, match="empty"):
        triton.of_flat(x[:0], kept)


@pytest.mark.parametrize("kind", ["as", "in place", "exchanged", "the first twice", "without"])
def test_triton_kernels_get_another_weight_for_queries_than_for_keys(kind: str) -> None:
    x, weight = torch.linspace(-2, 2, 9 * 8).reshape(9, 8), torch.linspace(0.5, 3, 8)

    def times(q: torch.Tensor, k: torch.Tensor, of_q: torch.Tensor, of_k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if kind == "in place":
            return q.mul_(of_q.repeat(4)), k.mul_(of_k.repeat(2))
        of_q, of_k = {"exchanged": (of_k, of_q), "the first twice": (of_q, of_q), "without": (1 + 0 * of_q, 1 + 0 * of_k)}.get(
            kind, (of_q, of_k)
        )
        return q * of_q.repeat(4), k * of_k.repeat(2)

    assert torch.equal(triton.of_weighted(x, weight, times), x * weight) == (kind in ("as", "in place"))
    with pytest.raises(Unsupported, match="weights of shape"):
        triton.of_weighted(x, weight[:4], times)


@pytest.mark.parametrize(
    "kind", ["as", "exchanged", "keys twice", "values twice", "keys alone", "one cache", "negative slots too"]
)
def test_triton_kernels_write_other_values_than_keys(kind: str) -> None:
    cache, rows = torch.linspace(-2, 2, 4 * 3 * 2 * 5).reshape(4, 3, 2, 5), torch.linspace(3, 7, 4 * 2 * 5).reshape(4, 2, 5)
    slots = torch.tensor([4, -1, 10, 0])
    before = cache.clone(), rows.clone()

    def write(keys: torch.Tensor, values: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> None:
        used = slots >= (-9 if kind == "negative slots too" else 0)
        if kind == "exchanged":
            keys, values = values, keys
        if kind == "values twice":
            keys = values
        if kind == "one cache":
            value_cache.copy_(key_cache)
        key_cache.view(-1, 2, 5)[slots[used]] = keys[used]
        if kind != "keys alone":
            value_cache.view(-1, 2, 5)[slots[used]] = (keys if kind == "keys twice" else values)[used]

    expected = posref.write_cache(cache, rows, slots)
    assert torch.equal(triton.of_pages(cache, rows, slots, write), expected) == (kind == "as")
    assert torch.equal(cache, before[0])
    assert torch.equal(rows, before[1])


@pytest.mark.parametrize("kind", ["right", "values rotate too", "keys stay as they are"])
def test_a_kernel_that_rotates_and_writes_is_judged_by_keys_and_values(kind: str, tmp_path: Path) -> None:
    def kernel(
        q: Any, k: Any, v: Any, k_cache: Any, v_cache: Any, slots: Any, where: Any, table: Any, *_: Any, **options: Any
    ) -> None:
        cos, sin = table[where][:, None].chunk(2, dim=-1)
        rotated = [posref.apply_rope(x, cos, sin, layout="half") for x in (k, v)]
        for cache, rows in (
            (k_cache, k if kind == "keys stay as they are" else rotated[0]),
            (v_cache, rotated[1] if kind == "values rotate too" else v),
        ):
            cache.flatten(0, 1)[slots[slots >= 0]] = rows[slots >= 0]

    cache, rows = torch.linspace(-2, 2, 4 * 4 * 2 * 8).reshape(4, 4, 2, 8), torch.linspace(3, 7, 4 * 2 * 8).reshape(4, 2, 8)
    slots = torch.tensor([4, -1, 10, 0])
    with imported("sglang_triton", tmp_path) as adapter:
        vars(adapter.paged)["fused_qk_rope_reshape_and_cache"] = kernel
        written = adapter.write_cache(cache, rows, slots)
    assert torch.equal(written, posref.write_cache(cache, rows, slots)) == (kind == "right")


def test_pages_that_a_triton_kernel_would_leave_are_not_asked() -> None:
    cache, rows, slots = torch.zeros(4, 3, 2, 5), torch.zeros(2, 2, 5), torch.tensor([4, 11])
    for wrong in (
        (cache[:0], rows, slots),
        (cache, rows[:0], slots[:0]),
        (cache, rows[:, :1], slots),
        (cache, rows, slots[:1]),
    ):
        with pytest.raises(Unsupported):
            triton.of_pages(*wrong, lambda *arrays: None)
    assert torch.equal(triton.of_pages(cache, rows, slots, lambda *arrays: None), cache)
    with pytest.raises(Unsupported, match="outside"):
        triton.of_pages(cache, rows, slots + 1, lambda *arrays: None)


def test_positions_of_three_axes_have_rows_for_triton_kernels() -> None:
    x, positions = torch.zeros(2, 3, 8), torch.stack([n * torch.arange(3) for n in (1, 5, 7)])
    where, rows = triton.rows_at(x, positions, [2, 1, 1])
    assert torch.equal(where, positions.repeat(1, 2))
    assert [rows, *(triton.rows_at(x, positions + n, [2, 1, 1])[1] for n in (2033, 2034, 9000))] == [2048, 2048, 4096, 16384]
    for sections, wrong in (
        ([2, 2], positions), ([2, 2, 1], positions), ([0, 0, 0], positions), ([2, 1, 1], positions[:2]),
        ([2, 1, 1], positions - 1), ([2, 1, 1], positions.double()), ([2, 1, 1], positions + (1 << 21)),
    ):  # fmt: skip
        with pytest.raises(Unsupported):
            triton.rows_at(x, wrong, sections)
    with pytest.raises(Unsupported):
        triton.rows_at(x[:0], positions, [2, 1, 1])
