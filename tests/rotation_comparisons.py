"""How a model of transformers rotates a random vector, with its own tables and functions, beside what from_config says."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
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


def modules(config: Any, code: Any, *, any_config: bool = False) -> Iterator[tuple[str, torch.nn.Module]]:
    """The rotary modules that say that they take this configuration, or all that can be built from it."""
    for kind in vars(code).values():
        if inspect.isclass(kind) and ROTARY.search(kind.__name__) and kind.__module__ == code.__name__:
            try:
                if any_config or get_type_hints(kind.__init__, vars(code)).get("config") is type(config):
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
        yield module(torch.zeros(1)), [positions.with_origin(positions.grid(cells, cells)[::-1] + 1, tokens_after=1)]
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


APPLY = re.compile(r"^apply_rotary(_pos)?_emb(_interleave)?$")
PLACES = (0, 1, 7)


@cache
def sources(file: str) -> dict[str, str]:
    """The text of every class and function of a file."""
    text = Path(file).read_text(encoding="utf-8")
    found = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return {node.name: "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]) for node in found}


def callers(config: Any, code: Any) -> Iterator[tuple[bool, Callable[..., Any]]]:
    """The functions that rotate in the classes that take this configuration, and whether the class is an indexer."""
    functions = {name: value for name, value in vars(code).items() if APPLY.match(name)}
    found, perhaps = set(), set()
    for kind in vars(code).values():
        if inspect.isclass(kind) and kind.__module__ == code.__name__ and issubclass(kind, torch.nn.Module):
            hinted = get_type_hints(kind.__init__, vars(code)).get("config")
            text = sources(code.__file__)[kind.__name__]
            names = {name for name in functions if re.search(rf"\b{name}\(", text)}
            if "config.rope_interleave" in text:  # one function or the other
                names = {name for name in names if name.endswith("_interleave") == config.rope_interleave}
            calls = {("Indexer" in kind.__name__, name, f"{DEINTERLEAVE}(" in text) for name in names}
            (found if hinted is type(config) else perhaps).update(calls)
    for indexer, name, moves in sorted(found or perhaps):
        yield indexer, moved(functions[name], getattr(code, DEINTERLEAVE)) if moves else functions[name]


DEINTERLEAVE = "deinterleave_head_dim"  # of Qwen2.5-Omni: even channels before odd ones


def moved(apply: Callable[..., Any], first: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """A function that rotates, with channels moved before."""

    @wraps(apply)
    def both(q: torch.Tensor, k: torch.Tensor, *table: torch.Tensor) -> Any:
        return apply(first(q), first(k), *table)

    return both


def of_tokens(module: torch.nn.Module, axes: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """The tables of a rotary module for some positions, of each type of layer, and the positions."""
    where = np.random.default_rng(3).integers(0, 9, (axes, 1, len(PLACES))) if axes > 1 else np.asarray([PLACES])
    prefixes = {n.removesuffix("inv_freq") for n, _ in module.named_buffers() if n.endswith("inv_freq") and "original" not in n}
    for prefix in sorted(prefixes):
        given = {"layer_type": prefix.removesuffix("_")} if prefix else {}
        try:
            yield prefix, module(torch.zeros(1), torch.asarray(where), **given), where
        except (RuntimeError, ValueError, IndexError, TypeError):  # of another number of axes
            continue


def applied(apply: Callable[..., Any], x: torch.Tensor, table: Any) -> torch.Tensor | None:
    """What a function makes of `x`, of shape (1, heads, tokens, lanes); None where the table is of another width."""
    try:
        if torch.is_tensor(table):  # complex numbers, after the heads in DeepSeek-V2, before them in Llama 4
            before = "[:, :, None, :]" in inspect.getsource(apply)
            found = apply(*[x.transpose(1, 2) if before else x] * 2, table)[0]
            return found.transpose(1, 2) if before else found
        alone = list(inspect.signature(apply).parameters)[1] == "cos"
        return apply(x, *table) if alone else apply(x, x, *table)[0]
    except (RuntimeError, ValueError):
        return None


def rotated(entry: Any, x: torch.Tensor, where: np.ndarray) -> Any:
    """The same by posref."""
    if entry.operation == "mrope":
        return posref.mrope(x.numpy(), where[:, :, None], **entry.options)
    return posref.rope(x.numpy(), where[:, None], **entry.options, length=8)


def compare_layouts(config: Any, found: dict[str, Any], compared: Counter[str], wrong: list[str]) -> None:
    """
    Random vectors of texts, rotated by the functions that the classes call, with the tables of the rotary modules.

    Each function and each table has part in a rotation by an entry, of an indexer where the class is one; each entry is such a
    rotation. Where no module says that it takes the configuration, any that can be built from it counts, and only the latter is
    asked.
    """
    mine = [(name, entry) for name, listed in found.items() for entry in listed if entry is not None and entry.options]
    mine = [("indexer" in name, entry) for name, entry in mine if entry.operation in ("rope", "mrope")]
    mine = [one for i, one in enumerate(mine) if one not in mine[:i]]
    used, strange, ran = set[int](), list[str](), False
    for node, code in codes(config) if mine else ():
        if turns_cells(node):  # see compare_axial
            continue
        sure = list(modules(node, code))
        calls = list(callers(node, code))
        have, ask = set[Any](), {(module, prefix) for _, module in sure for prefix, *_ in of_tokens(module, 1)}
        for _, module in sure or list(modules(node, code, any_config=True)):
            for i, (indexer, entry) in enumerate(mine):
                lanes = entry.options.get("rotary_dim") or 2 * sum(entry.options["sections"])
                x = random(1, 2, len(PLACES), lanes)
                for prefix, table, where in of_tokens(module, 3 if entry.operation == "mrope" else 1):
                    for apply in (apply for kind, apply in calls if kind is indexer):
                        theirs, ran = applied(apply, x, table), True
                        if theirs is not None and near(rotated(entry, x, where), theirs, TIGHT):
                            used.add(i)
                            have |= {(module, prefix), (indexer, apply)}
        strange += [f"{type(one[0]).__name__} {one[1]}: its table is in no rotation of ours" for one in ask - have]
        strange += [f"{apply.__name__} of {node.model_type} is no rotation of ours" for _, apply in set(calls) - have if sure]
    if ran:
        compared.update(["layout", *(["layout of an indexer"] if any(indexer for indexer, _ in mine) else [])])
        if all(entry.options is not None for listed in found.values() for entry in listed if entry is not None):
            wrong += strange
        wrong += [f"no function rotates by {mine[i]}" for i in set(range(len(mine))) - used]
