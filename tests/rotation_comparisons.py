"""How a model of transformers rotates a random vector, with its own tables and functions, beside what from_config says."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_type_hints

import numpy as np
import torch
from model_comparisons import codes, near

import posref
from posref import from_config, positions

ROTARY = re.compile(r"Rotary|RopePosition|RoPEPosition")
GRID = (3, 4)
TIGHT = 1e-4  # of vectors of normal numbers at positions below 10


def random(*shape: int) -> torch.Tensor:
    return torch.asarray(np.random.default_rng(5).standard_normal(shape).astype(np.float32))


def modules(config: Any, code: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    """The rotary modules that say that they take this configuration."""
    for kind in vars(code).values():
        if inspect.isclass(kind) and ROTARY.search(kind.__name__) and kind.__module__ == code.__name__:
            try:
                if get_type_hints(kind.__init__, vars(code)).get("config") is type(config):
                    yield kind.__name__, kind(config).eval()
            except (AttributeError, KeyError, NameError, TypeError, ValueError):
                continue


def turned(code: Any, x: torch.Tensor, table: Any, axes: int) -> torch.Tensor:
    """What the model's function for images makes of `x`, of shape (1, heads, tokens, lanes)."""
    if torch.is_tensor(table):  # complex numbers
        return code.vision_apply_rotary_emb(x.transpose(1, 2), x.transpose(1, 2), table)[0].transpose(1, 2)
    cos, sin = table
    if hasattr(code, "apply_multidimensional_rope"):
        where = torch.zeros(1, x.shape[-2], axes)  # of which it reads the number of axes
        return code.apply_multidimensional_rope(x.transpose(1, 2), cos, sin, where).transpose(1, 2)
    if hasattr(code, "apply_rotary_pos_emb_vision"):
        rows = x[0].transpose(0, 1)
        return code.apply_rotary_pos_emb_vision(rows, rows, cos, sin)[0].transpose(0, 1)[None]
    pairs = getattr(code, "apply_rotary_pos_emb_2d", None) or getattr(code, "apply_rotary_pos_emb_2d_self_attn", None)
    if pairs is not None:
        return pairs(x, x, cos, sin)[0]
    apply = code.apply_rotary_pos_emb
    if cos.ndim == 4:  # EfficientLoFTR's grid, all of whose heads are one
        cos, sin = (half.reshape(1, -1, half.shape[-1]) for half in table)
    if cos.ndim == 2 and "unsqueeze_dim" in inspect.signature(apply).parameters:
        cos, sin = cos[None], sin[None]
    return apply(x, x, cos, sin)[0]


def of_cells(config: Any, code: Any, module: torch.nn.Module, axes: int) -> Iterator[tuple[Any, list[Any]]]:
    """Tables of a rotary module for some cells, and these cells in the ways in which a model may count them."""
    wanted = list(inspect.signature(module.forward).parameters)
    image = (
        torch.zeros(1, 3, *(n * getattr(config, "patch_size", 1) for n in GRID))
        if isinstance(getattr(config, "patch_size", 1), int)
        else None
    )
    where = np.random.default_rng(3).integers(0, 9, (axes, 4))
    ids = torch.asarray(where.T.copy())
    if wanted == ["pixel_values"]:  # DINOv3: patches of an image, in turns
        yield module(image), [positions.centred(GRID)]
    elif hasattr(config, "q_aggregation_stride"):  # EfficientLoFTR: cells from 1
        yield module(torch.zeros(1, 1, *(n * config.q_aggregation_stride for n in GRID))), [positions.grid(*GRID) + 1]
    elif len(wanted) == 1:  # Llama 4: width first, cells from 1, and the class token last
        cells = config.image_size // config.patch_size
        yield module(torch.zeros(1)), [positions.with_origin(positions.grid(cells, cells)[::-1] + 1, after=1)]
    elif "layer_type" in wanted:  # NeoMME: axes first
        for kind in sorted(set(config.layer_types)):
            yield module(torch.zeros(1), ids.T[:, None], layer_type=kind), [where]
    else:
        with_batch = hasattr(code, "apply_multidimensional_rope")
        yield module(torch.zeros(1), ids[None] if with_batch else ids), [where, where[::-1]]


def turns_cells(node: Any) -> bool:
    """Whether axial_rope is among the encodings of this part, taken alone."""
    try:
        found = from_config(node)
    except ValueError:
        return False
    return any(entry is not None and entry.operation == "axial_rope" for entries in found.values() for entry in entries)


def compare_axial(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Random vectors at some cells: each module rotates as one of the entries, and each entry as one of the modules."""
    given = [e.options for e in entries if e.operation == "axial_rope" and e.options is not None]
    used = set[int]()
    for node, code in codes(config) if given else ():
        if not turns_cells(node):
            continue
        for name, module in modules(node, code):
            for table, ways in of_cells(node, code, module, len(given[0]["dims"])):
                lanes = 2 * table.shape[-1] if torch.is_tensor(table) else table[0].shape[-1]
                fitting = [i for i, options in enumerate(given) if sum(options["dims"]) == lanes]
                x = random(1, 2, ways[0].shape[-1], lanes)
                found = turned(code, x, table, len(given[0]["dims"]))
                where = [
                    i for i in fitting for way in ways if near(posref.axial_rope(x.numpy(), way, **given[i]), found, TIGHT)
                ]
                used.update(where)
                wrong += [] if where else [f"{name} rotates otherwise"]
    if given:
        compared["axial_rope"] += 1
    wrong += [f"no module rotates with {given[i]}" for i in set(range(len(given))) - used]
