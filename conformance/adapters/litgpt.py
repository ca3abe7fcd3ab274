"""
LitGPT: `build_rope_cache` with `apply_rope` or `apply_rope_interleave`, as its GPT calls them.

The cache has a row for every position from 0, so far positions with many channels are too large here.
"""

from types import SimpleNamespace

import torch
from litgpt.model import GPT, apply_rope_interleave
from litgpt.model import apply_rope as apply_half
from torch import Tensor

from posref.scaling import Linear, Llama3, Scaling, YaRN

from ..errors import Unsupported
from ._shared import lacks

PACKAGE = "litgpt"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT = 1 << 26  # elements of a table of which a few rows are looked up
ROTATE = {"half": apply_half, "interleaved_to_half": apply_rope_interleave}


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Scaling | None = None
) -> Tensor:
    """The rows of GPT.rope_cache at these positions, then the function of the layout; lanes beyond rotary_dim pass."""
    if layout not in ROTATE:
        lacks(f"no layout {layout!r}")
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    if where.is_floating_point() or where.numel() == 0 or int(where.min()) < 0:
        lacks("the cache has rows only for integers from 0 on")
    if (int(where.max()) + 1) * dim > LIMIT:
        lacks(f"a cache of {int(where.max()) + 1} rows is too large here")
    config = SimpleNamespace(
        rope_adjustments=_adjustments(scaling),
        rope_n_elem=dim,
        rope_base=base,
        rope_condense_ratio=1,
        rope_local_base_freq=None,
    )
    cos, sin = GPT.rope_cache(SimpleNamespace(config=config, max_seq_length=int(where.max()) + 1))
    flat = x.reshape(1, 1, -1, x.shape[-1])
    turned = ROTATE[layout](flat[..., :dim], cos[where][None], sin[where][None])
    return torch.cat((turned, flat[..., dim:]), -1).reshape(x.shape)  # as CausalSelfAttention.forward does


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str) -> Tensor:
    """The function of the layout, on tables whose columns are there twice, as build_rope_cache returns them."""
    if layout not in ROTATE:
        lacks(f"no layout {layout!r}")
    pairs = cos.shape[-1]
    table = (torch.broadcast_to(part, (*x.shape[:-1], pairs)).reshape(1, -1, pairs).repeat(1, 1, 2) for part in (cos, sin))
    flat = x.reshape(1, 1, -1, x.shape[-1])
    turned = ROTATE[layout](flat[..., : 2 * pairs], *table)
    return torch.cat((turned, flat[..., 2 * pairs :]), -1).reshape(x.shape)


def _adjustments(scaling: Scaling | None) -> dict[str, float] | None:
    """Return Config.rope_adjustments for a record of posref.scaling."""
    match scaling:
        case None:
            return None
        case Linear(factor):
            return {"factor": factor}
        case Llama3():
            settings = dict(vars(scaling))
        case YaRN():
            settings = {name: value for name, value in vars(scaling).items() if value is not None}
        case _:
            raise Unsupported(repr(scaling))
    return {"original_max_seq_len": settings.pop("original_length"), **settings}


# Read and run in LitGPT 0.5.13 with torch 2.13.0 on a CPU.
NOTES = (
    "YaRN's ramp is used as the share of the unscaled frequencies (model.py:1021), the authors' code has 1 - ramp: "
    "fast pairs are divided by the factor and slow ones kept.",
    "YaRN without mscale and mscale_all_dim has the attention factor 1 (model.py:988).",
    "mscale=0 is taken for not given (model.py:982).",
    "YaRN's correction range ends at d/2 - 1 (model.py:1009); the authors' code has d - 1.",
    "GPT.rope_cache hands neither truncate nor an attention factor on (model.py:236).",
)
