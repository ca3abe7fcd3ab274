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
    tops = {"megatron", *TREES}
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
    if name in ("timm", "flash_attn_triton"):
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
