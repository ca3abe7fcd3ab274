"""Learned tables that a model of transformers fits to another grid, beside what from_config says of it."""

import copy
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from math import isqrt
from typing import Any

import numpy as np
import torch
from model_comparisons import ABSENT, attempt, codes, near
from rotation_comparisons import sources
from transformers import PreTrainedModel

import posref

LEARNED = ("position_embeddings", "position_embedding", "pos_embed", "positional_embedding")
WIDTH = 2  # columns of the table that are asked


def tables(node: Any, code: Any) -> Iterator[tuple[Any, torch.Tensor]]:
    """The modules of a model that fit a learned table to the size of an image, with the table's rows filled at random."""
    for kind in vars(code).values():
        if inspect.isclass(kind) and kind.__module__ == code.__name__ and hasattr(kind, "interpolate_pos_encoding"):
            try:
                module = kind(node)
            except ABSENT:
                continue
            name = next((name for name in LEARNED if getattr(module, name, None) is not None), None)
            held = None if name is None else getattr(module, name)
            weight = held.weight if isinstance(held, torch.nn.Embedding) else held
            if isinstance(weight, torch.nn.Parameter):
                weight.data = torch.asarray(np.random.default_rng(7).standard_normal(weight.shape).astype(np.float32))
                yield module, weight.data.reshape(-1, weight.shape[-1])


def compare_resampled(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """A table of a square grid for three rows of cells more, and two columns fewer."""
    listed = [entry.options for entry in entries if entry.operation == "resample" and entry.options is not None]
    for node, code in codes(config) if listed else ():
        patch = getattr(node, "patch_size", None)
        patch = patch if isinstance(patch, int) else None if patch is None else patch[-1]
        for module, table in tables(node, code) if patch else ():
            fitted = list[bool]()
            for options in listed:
                old = isqrt(table.shape[0] - options["prefix"])
                new = (old + 3, old - 2)
                given = {"embeddings": torch.zeros(1, options["prefix"] + new[0] * new[1], table.shape[1])}
                names = inspect.signature(module.interpolate_pos_encoding).parameters
                unit = patch if "embeddings" in names else 1  # pixels, or cells where the tokens are not told
                given |= {"height": new[0] * unit, "width": new[1] * unit}
                if not set(names) <= set(given) or old**2 + options["prefix"] != table.shape[0]:
                    continue
                found = module.interpolate_pos_encoding(**{name: given[name] for name in names}).detach()
                found = found.reshape(-1, table.shape[1])[:, :WIDTH]
                ours = posref.resample(table[:, :WIDTH].double().numpy(), new, old_size=(old, old), **options)
                fitted.append(near(ours[-found.shape[0] :], found, 1e-4))
            if fitted:
                compared["resample"] += 1
            if fitted and not any(fitted):
                wrong.append(f"the table of {type(module).__name__} is fitted otherwise")


OWNS = re.compile(r"self\.(\w*pos\w*) = (nn\.Parameter|nn\.Embedding|QuantEmbedding)\(")
BESIDE = re.compile(r"rel_?pos|relative|bias|window")
SIZES = ("image_size", "pretrain_image_size", "max_img_size")
FARTHEST = 2048  # pixels
LARGEST = 100_000_000  # numbers of a module that is run
OFFSETS = (0, 1)  # rows before the first patch, of a class token that the model has not


class Reached(Exception):
    """The first tensor that is not zero."""


def inputs(node: Any) -> Iterator[torch.Tensor]:
    """Images, videos and spectrograms of zeros, of the sizes that a configuration names."""
    channels = getattr(node, "num_channels", None) or getattr(node, "in_channels", None) or 3
    for size in [getattr(node, key) for key in SIZES if getattr(node, key, None) is not None]:
        sides = (size, size) if isinstance(size, int) else tuple(size)
        if max(sides) > FARTHEST:
            continue
        yield torch.zeros(1, channels, *sides)
        yield torch.zeros(1, getattr(node, "num_frames", 1), channels, *sides)
    if hasattr(node, "num_mel_bins") and hasattr(node, "max_length"):
        yield torch.zeros(1, node.max_length, node.num_mel_bins)


def owners(node: Any, code: Any) -> Iterator[tuple[Any, Any]]:
    """The modules of a file that a configuration builds and that have a learned table, or such a model, and its first owner."""
    small = copy.deepcopy(node)
    if isinstance(vars(small).get("num_hidden_layers"), int):  # not a property, which cannot be set
        small.num_hidden_layers = 1
    of_file = [kind for kind in vars(code).values() if inspect.isclass(kind) and kind.__module__ == code.__name__]
    of_file = [kind for kind in of_file if issubclass(kind, torch.nn.Module)]
    owning = [kind for kind in of_file if OWNS.search(sources(code.__file__)[kind.__name__])]
    models = [kind for kind in of_file if issubclass(kind, PreTrainedModel) and kind.config_class is type(node)]
    found = False
    for kind in sorted(owning, key=lambda kind: kind in models):
        made = attempt(lambda kind=kind: of_size(kind, small))
        found = found or made is not None
        yield from [] if made is None else [(made, made)]
    models = [kind for kind in models if "PreTrained" not in kind.__name__]
    for model in models[:1] if owning and not found else ():
        made = attempt(lambda model=model: of_size(model, small))
        yield from [] if made is None else [(made, m) for m in made.modules() if type(m) in owning][:1]


def of_size(kind: Any, config: Any) -> torch.nn.Module:
    """Build a module, unless it is a large one."""
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in kind(config).parameters())
    if size > LARGEST:
        raise ValueError(size)
    return kind(config).eval()


def first_reached(module: torch.nn.Module, given: torch.Tensor, width: int) -> torch.Tensor:
    """The first tensor of some width that is not zero and that a module inside gets, or the result."""
    found: list[torch.Tensor] = []

    def look(_: Any, args: tuple[Any, ...]) -> None:
        for value in args:
            if isinstance(value, torch.Tensor) and value.is_floating_point() and width in value.shape and bool(value.any()):
                found.append(value.detach())
                raise Reached

    hooks = [inside.register_forward_pre_hook(look) for inside in module.modules()]
    try:
        result = module(given)
        found.append((result if isinstance(result, torch.Tensor) else result[0]).detach())
    except Reached:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return found[0]


def added(node: Any, code: Any) -> Iterator[tuple[Any, torch.Tensor, torch.Tensor]]:
    """The modules that add a learned table to patches, the table's random rows, and what becomes of patches that are zero."""
    for model, module in owners(node, code):
        names = OWNS.findall(sources(code.__file__)[type(module).__name__])
        for name, _ in [(name, kind) for name, kind in names if not BESIDE.search(name)]:
            held = getattr(module, name, None)
            table = getattr(held, "weight", held)
            for given in inputs(node) if isinstance(table, torch.nn.Parameter) and table.ndim > 1 else ():
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.zero_()
                    table.copy_(torch.asarray(np.random.default_rng(7).standard_normal(table.shape).astype(np.float32)))
                    try:
                        found = rows_of(first_reached(model, given, table.shape[-1]), table.shape[-1])
                    except (*ABSENT, IndexError, AssertionError):
                        continue
                rows, images = table.detach().reshape(-1, table.shape[-1]), {1, getattr(node, "num_frames", 1)}
                if any(found.shape[0] in {n * (rows.shape[0] - offset) for n in images} for offset in OFFSETS):
                    yield f"{type(module).__name__}.{name}", rows[:, :WIDTH].clone(), found[:, :WIDTH].clone()
                    break


def rows_of(found: torch.Tensor, width: int) -> torch.Tensor:
    """A tensor of patches as rows, whose channels may come before the cells."""
    if found.shape[-1] != width and found.ndim == 4 and found.shape[1] == width:
        found = found.permute(0, 2, 3, 1)
    rows = found.reshape(-1, found.shape[-1])
    return rows[rows.any(-1)]  # class and register tokens without a row of the table stay zero


def compare_added(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """The rows of a learned table are added in order, from the entry's offset on; where it says so, with row 0 to each."""
    listed = [entry for entry in entries if entry.operation == "learned" and entry.options is not None]
    for node, code in codes(config) if listed else ():
        for name, table, found in added_of(node, code):
            compared["learned"] += 1
            if not any(same_rows(entry, table, found) for entry in listed):
                wrong.append(f"the table {name} is not added row by row")


def same_rows(entry: Any, table: torch.Tensor, found: torch.Tensor) -> bool:
    """Whether the patches of each image have the rows of an entry, in order."""
    rows = posref.learned(torch.arange(table.shape[0] - entry.options["offset"]), table, **entry.options)
    rows = rows + table[:1] if "row 0" in entry.conventions.get("table", "") else rows
    images, left = divmod(found.shape[0], rows.shape[0])
    return left == 0 and near(rows.repeat(images, 1), found, 1e-6)


_KNOWN: dict[tuple[str, str], list[tuple[str, torch.Tensor, torch.Tensor]]] = {}


def added_of(node: Any, code: Any) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    """The same once for each configuration: many models have the same encoder of images."""
    key = (code.__name__, f"{type(node).__name__}{node.to_dict()}")
    if key not in _KNOWN:
        _KNOWN[key] = [(name, table, found) for name, table, found in added(node, code)]
    return _KNOWN[key]
