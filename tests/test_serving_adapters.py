"""Adapters of libraries that serve models: that they find a source tree, and ask the functions in it, not a copy."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch

import posref
from posref.conformance import Unsupported
from posref.conformance.adapters import _triton as triton

ROTATE = """
import torch

def rotate(x, positions, base, half=True):
    d = x.shape[-1]
    angles = positions[:, None].float() * base ** -(torch.arange(0, d, 2) / d)
    cos, sin = SIGN * angles.cos()[:, None], SIGN * angles.sin()[:, None]
    u, v = x.chunk(2, -1) if half else (x[..., ::2], x[..., 1::2])
    out = (u * cos - v * sin, v * cos + u * sin)
    return torch.cat(out, -1) if half else torch.stack(out, -1).flatten(-2)
"""
ENGINE = """
_ROPE_DICT = {}

class Rope:
    def __init__(self, head, base):
        self.head, self.base = head, base
    def _ensure_cos_sin_cache_length(self, last):
        pass
    def __call__(self, positions, query, key):
        return rotate(query.view(len(positions), -1, self.head), positions, self.base).view(query.shape), key
"""
VLLM = "def get_rope(head, rows, neox, parameters, dtype): return Rope(head, parameters['rope_theta'])"
SGLANG = "def get_rope(head, dim, rows, base, neox, scaling, dtype, part): return Rope(head, base)"
APPLY = """
def apply_rotary_emb_torch(x, cos, sin, interleaved): return rotate(x[0], sin[:, 0], 1e4)[None]
class RotaryEmbedding:
    def __init__(self, dim, base): self.dim = dim
    def _update_cos_sin_cache(self, rows, dtype):
        self._cos_cached = self._sin_cached = torch.arange(rows)[:, None].expand(rows, self.dim // 2).to(dtype)
"""
MEGATRON = """
class RotaryEmbedding:
    def __init__(self, dim, percent, **options): self.dim = dim
    def get_emb(self, rows): return torch.arange(rows)[:, None, None, None].expand(rows, 1, 1, self.dim)
def apply_rotary_pos_emb(t, freqs, config, mscale, cp_group): return rotate(t[:, 0], freqs[:, 0, 0, 0], 1e4)[:, None]
"""
TIMM = """
def _rope_layout(table, rotate_half): return torch.cat((table, table), -1)
def apply_rot_embed(x, sin, cos, half):
    u, v = x.chunk(2, -1)
    return SIGN * (x * cos + torch.cat((-v, u), -1) * sin)
"""
TRITON = """
import torch
from flash_attn.ops.triton import rotary as kernels
def apply_rotary_emb(x, cos, sin, interleaved, seqlen_offsets):
    rows = slice(seqlen_offsets, seqlen_offsets + x.shape[1])
    u, v = x.chunk(2, -1)
    cos, sin = cos[rows, None], sin[rows, None]
    with kernels.torch.cuda.device(None):
        return SIGN * kernels.torch.cat((u * cos - v * sin, v * cos + u * sin), -1)
"""
MROPE = """
import torch
def triton_mrope(q, k, cos, sin, sections, head, width, interleaved, neox):
    def rotate(x):
        u, v = x.unflatten(1, (-1, head)).chunk(2, -1)
        c, s = cos[0, :, None], sin[2, :, None]
        return SIGN * torch.cat((u * c - v * s, v * c + u * s), -1).flatten(1)
    return rotate(q), rotate(k)
"""
MROPE_IN_PLACE = """
import torch
triton_ernie45_rope_fused_inplace = None
def triton_mrope_fused(q, k, cache, positions, sections, head, width, interleaved, in_turn, neox, axes):
    cos, sin = cache[positions[2]][:, None].chunk(2, -1)
    for x in (q, k):
        u, v = x.unflatten(1, (-1, head)).chunk(2, -1)
        x.copy_(SIGN * torch.cat((u * cos - v * sin, v * cos + u * sin), -1).flatten(1))
"""
VLLM_ROPE = "vllm/model_executor/layers/rotary_embedding"
SGLANG_KERNELS = "sglang/kernels/ops/attention"
EMBEDDINGS = "megatron/core/models/common/embeddings"
TREES = {  # what the adapter imports
    "vllm": {
        "vllm/model_executor/layers/rotary_embedding/__init__.py": ROTATE + ENGINE + VLLM,
        "vllm/model_executor/layers/rotary_embedding/ernie45_vl_rope.py": "",
        "vllm/model_executor/models/bloom.py": "",
    },
    "sglang": {
        "sglang/srt/layers/rotary_embedding/factory.py": ROTATE + ENGINE + SGLANG,
        "sglang/srt/layers/rotary_embedding/mrope.py": "",
    },
    "flash_attn": {"flash_attn/layers/rotary.py": ROTATE + APPLY},
    "flash_attn_triton": {"flash_attn/layers/rotary.py": TRITON, "flash_attn/ops/triton/rotary.py": "import torch"},
    "vllm_triton": {
        f"{VLLM_ROPE}/mrope.py": MROPE,
        f"{VLLM_ROPE}/bailing_mrope.py": "",
        f"{VLLM_ROPE}/packed_qk_rope.py": "",
        "vllm/model_executor/layers/fused_qk_norm_rope.py": "",
        "vllm/v1/attention/ops/triton_reshape_and_cache_flash.py": "",
        "triton/__init__.py": "",
        "triton/language.py": "",
    },
    "sglang_triton": {
        "sglang/srt/layers/rotary_embedding/factory.py": "",
        "sglang/srt/layers/rotary_embedding/mrope.py": "",
        f"{SGLANG_KERNELS}/rotary_triton.py": MROPE_IN_PLACE,
        f"{SGLANG_KERNELS}/fused_qk_rmsnorm_rope_gate.py": "",
        f"{SGLANG_KERNELS}/dsv4/rope.py": "",
        f"{SGLANG_KERNELS}/fused_qk_rope_reshape_and_cache.py": "",
    },
    "megatron_core": {
        f"{EMBEDDINGS}/rope_utils.py": ROTATE + MEGATRON,
        f"{EMBEDDINGS}/rotary_pos_embedding.py": ROTATE + MEGATRON,
        f"{EMBEDDINGS}/yarn_rotary_pos_embedding.py": "",
        f"{EMBEDDINGS}/relative_pos_embedding.py": "",
    },
    "timm": {
        "timm/layers/pos_embed_sincos.py": ROTATE + TIMM,
        "timm/layers/pos_embed.py": "",
        "timm/layers/pos_embed_rel.py": "",
    },
}


def _theirs() -> list[str]:
    tops = {"megatron", "triton", *TREES}
    return [m for m in sys.modules if m.split(".")[0] in tops or m.removeprefix("posref.conformance.adapters.") in TREES]


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    before = {name: sys.modules.pop(name) for name in _theirs()}
    yield
    for name in _theirs():
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.parametrize("sign", [1, -1], ids=["as", "negated"])
@pytest.mark.parametrize("name", TREES)
def test_the_adapter_asks_a_source_tree_on_the_path(
    name: str, sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in TREES[name].items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("SIGN", str(sign)), encoding="utf-8")
    top = tmp_path / next(iter(TREES[name])).split("/")[0]
    (top / "__init__.py").write_text("raise RuntimeError('the whole library')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    adapter = import_module(f"posref.conformance.adapters.{name}")
    x, positions = torch.linspace(-2, 2, 3 * 8).reshape(3, 8), torch.tensor([0, 5, 9])
    if name in ("timm", "flash_attn_triton", "vllm_triton", "sglang_triton"):
        tables = posref.rope_cos_sin(positions, 8, base=1e4)
        found = adapter.apply_rope(x, *tables, layout="half")
    else:
        found = adapter.rope(x, positions, layout="half", base=1e4)
    assert torch.allclose(found, sign * posref.rope(x, positions, layout="half", base=1e4), atol=1e-5)
    assert adapter.PACKAGE.replace("-", "_") == name.removesuffix("_triton")


ROTATIONS = {
    "as": lambda x, head: x,
    "the last head stays": lambda x, head: torch.where(torch.arange(x.shape[head]).unflatten(0, HEADS[head]) < 2, x, 0),
    "the heads in another order": lambda x, head: x.flip(head),
}
HEADS = {1: (-1, 1, 1), 2: (-1, 1)}


@pytest.mark.parametrize("kind", ROTATIONS)
def test_triton_kernels_are_asked_for_several_heads(kind: str) -> None:
    x, change = torch.linspace(-2, 2, 3 * 8).reshape(3, 8), ROTATIONS[kind]
    assert torch.equal(triton.of_heads(x, lambda heads: change(heads, 2)), x) == (kind == "as")
    assert torch.equal(triton.of_both(x, lambda q, k: (change(q, 1), k)), x) == (kind == "as")
    assert torch.equal(triton.of_both(x, lambda q, k: (q, k.flip(1))), x) is False
    with pytest.raises(Unsupported):
        triton.of_heads(x[:0], lambda heads: heads)


def test_a_table_for_triton_kernels_has_a_row_before_those_of_the_tokens() -> None:
    x, table = torch.zeros(2, 3, 8), torch.arange(12.0).reshape(3, 4).cos()
    rows = triton.rows_of(table, x)
    assert torch.equal(rows[1:], table.repeat(2, 1))
    assert not (rows[0] == table).any()


def test_triton_kernels_of_flat_heads_get_three_of_queries_and_two_of_keys() -> None:
    x = torch.linspace(-2, 2, 3 * 8, requires_grad=True).reshape(3, 8)
    shapes = []

    def last(q: torch.Tensor, k: torch.Tensor, at: int = -1) -> tuple[torch.Tensor, torch.Tensor]:
        shapes.append((q.shape, k.shape))
        zeros = [torch.zeros_like(t).unflatten(1, (-1, 8)) for t in (q, k)]
        for out, t in zip(zeros, (q, k), strict=True):
            out[:, at] = t.unflatten(1, (-1, 8))[:, at]
        return zeros[0].flatten(1), zeros[1].flatten(1)

    found = triton.of_flat(x, last)
    assert torch.equal(found, x)
    assert not found.requires_grad
    assert shapes == [((3, 24), (3, 16))]
    assert not torch.equal(triton.of_flat(x, lambda q, k: last(q, k, 0)), x)
    assert not torch.equal(triton.of_flat(x, lambda q, k: (q, k.roll(8, 1))), x)
    with pytest.raises(Unsupported, match="empty"):
        triton.of_flat(x[:0], last)


@pytest.mark.parametrize("kind", ["as", "in place", "exchanged", "the first twice", "without"])
def test_triton_kernels_get_another_weight_for_queries_than_for_keys(kind: str) -> None:
    x, weight = torch.linspace(-2, 2, 3 * 8).reshape(3, 8), torch.linspace(0.5, 3, 8)

    def times(q: torch.Tensor, k: torch.Tensor, of_q: torch.Tensor, of_k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if kind == "in place":
            return q.mul_(of_q.repeat(3)), k.mul_(of_k.repeat(2))
        of_q, of_k = {"exchanged": (of_k, of_q), "the first twice": (of_q, of_q), "without": (1 + 0 * of_q, 1 + 0 * of_k)}.get(
            kind, (of_q, of_k)
        )
        return q * of_q.repeat(3), k * of_k.repeat(2)

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
