"""`posref golden --config FILE --component vision`: proved values of a vision tower are those of the model's own code."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import run
from transformers import AutoConfig

from posref import positions

ROWS, COLUMNS = 4, 6


def of_ids(code: Any, kind: str, config: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The table of the model's rotary module for the cells of an image, row by row."""
    ids = torch.cartesian_prod(torch.arange(ROWS), torch.arange(COLUMNS))
    cos, sin = getattr(code, kind)(config)(torch.zeros(1), ids)
    return cos, sin


def qwen(module: str) -> Any:
    """Return the rotation of one of Qwen's vision towers, given the name of its rotary module."""

    def turned(code: Any, config: Any, x: torch.Tensor) -> torch.Tensor:
        rows = x.transpose(0, 1)
        return code.apply_rotary_pos_emb_vision(rows, rows, *of_ids(code, module, config))[0].transpose(0, 1)

    return turned


def pixtral(code: Any, config: Any, x: torch.Tensor) -> torch.Tensor:
    cos, sin = of_ids(code, "PixtralVisionRotaryEmbedding", config)
    return code.apply_rotary_pos_emb(x[None], x[None], cos[None], sin[None])[0][0]


def llama4(code: Any, config: Any, x: torch.Tensor) -> torch.Tensor:
    """Of the cells of its whole image and the class token, those that the call has."""
    table = code.Llama4VisionRotaryEmbedding(config)(torch.zeros(1))[SOME]
    heads = x[None].transpose(1, 2)
    return code.vision_apply_rotary_emb(heads, heads, table)[0].transpose(1, 2)[0]


CELLS = 24  # of a side of Llama 4's image: 336 pixels, patches of 14
SOME = [0, 1, CELLS, CELLS**2 - 1, CELLS**2]
LLAMA4 = {"image_size": 14 * CELLS, "patch_size": 14}
# The model's code, its vision configuration, and the command's options for positions.
MODELS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "qwen2_vl": (qwen("Qwen2VLVisionRotaryEmbedding"), {}, ("--grid", f"{ROWS}x{COLUMNS}")),
    "qwen3_vl": (qwen("Qwen3VLVisionRotaryEmbedding"), {}, ("--grid", f"{ROWS}x{COLUMNS}")),
    "pixtral": (pixtral, {}, ("--grid", f"{ROWS}x{COLUMNS}")),
    "llama4": (llama4, LLAMA4, ("--input", "positions.npz")),
}


@pytest.mark.parametrize("model", MODELS)
def test_golden_data_of_a_vision_tower_is_the_models_own(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the error that the file allows in float32."""
    turned, changed, where = MODELS[model]
    config = AutoConfig.for_model(model) if not changed else AutoConfig.for_model(model, vision_config=changed)
    vision = getattr(config, "vision_config", config)
    heads = getattr(vision, "num_heads", None) or vision.num_attention_heads
    lanes = (getattr(vision, "embed_dim", None) or vision.hidden_size) // heads
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(config.to_dict(), default=str), encoding="utf-8")
    cells = positions.with_origin(positions.grid(CELLS, CELLS)[::-1] + 1, tokens_after=1)
    np.savez("positions.npz", positions=cells[:, SOME])  # column and row from 1, the class token last
    tokens = len(SOME) if "--input" in where else ROWS * COLUMNS
    asked = ("axial_rope", "--config", "config.json", "--component", "vision", "--shape", f"2,{tokens},{lanes}")
    done = run("golden", *asked, *where, "-o", "golden.npz")
    assert done.exit_code == 0, done.output
    assert "proved by two witnesses" in done.output
    with np.load("golden.npz") as data:
        x, true, allowed = (data[name] for name in ("in/x", "out/out", "allowed/float32/out"))
    code = import_module(f"transformers.models.{model}.modeling_{model}")
    found = turned(code, vision, torch.as_tensor(x, dtype=torch.float32)).detach().double().numpy()
    assert found.shape == true.shape
    assert np.all(np.abs(found - true) <= allowed)
