"""Learned tables that a model of transformers fits to another grid, beside what from_config says of it."""

import inspect
from collections import Counter
from collections.abc import Iterator
from math import isqrt
from typing import Any

import numpy as np
import torch
from model_comparisons import ABSENT, codes, near

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
    listed = [entry for entry in entries if entry.operation == "resample" and entry.options is not None]
    for node, code in [(node, code) for node, code in codes(config) if node is config]:  # parts are model types of their own
        patch = getattr(node, "patch_size", None)
        patch = patch if isinstance(patch, int) else None if patch is None else patch[-1]
        for module, table in tables(node, code) if listed and patch else ():
            options = listed[0].options
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
            compared["resample"] += 1
            if not near(ours[-found.shape[0] :], found, 1e-4):
                wrong.append(f"the table of {type(module).__name__} is fitted otherwise")


def inputs(node: Any) -> Iterator[torch.Tensor]:
    """Images, videos and spectrograms of zeros, of the sizes that a configuration names."""
    size, channels = getattr(node, "image_size", None), getattr(node, "num_channels", 3)
    if size is not None:
        sides = (size, size) if isinstance(size, int) else tuple(size)
        yield torch.zeros(1, channels, *sides)
        yield torch.zeros(1, getattr(node, "num_frames", 1), channels, *sides)
    if hasattr(node, "num_mel_bins"):
        yield torch.zeros(1, node.max_length, node.num_mel_bins)


def added(node: Any, code: Any) -> Iterator[tuple[Any, torch.Tensor, torch.Tensor]]:
    """The modules that add a learned table to patches, the table's random rows, and what becomes of patches that are zero."""
    for kind in vars(code).values():
        if not (inspect.isclass(kind) and kind.__module__ == code.__name__ and kind.__name__.endswith("Embeddings")):
            continue
        for given in inputs(node):
            try:
                module = kind(node).eval()
                name = next((name for name in LEARNED if isinstance(getattr(module, name, None), torch.nn.Parameter)), None)
                if name is None:
                    break
                for parameter in module.parameters():
                    parameter.data.zero_()
                table = getattr(module, name)
                table.data = torch.asarray(np.random.default_rng(7).standard_normal(table.shape).astype(np.float32))
                found = module(given)
            except (*ABSENT, RuntimeError, IndexError, AssertionError):
                continue
            found = found if isinstance(found, torch.Tensor) else found[0]
            yield module, table.data.reshape(-1, table.shape[-1]), found.detach()
            break


def compare_added(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """The rows of a learned table without offset are added in their order, from the first one on."""
    listed = [e for e in entries if e.operation == "learned" and e.options is not None and not e.options["offset"]]
    for node, code in [(node, code) for node, code in codes(config) if node is config] if listed else ():
        for module, table, found in added(node, code):
            if found.numel() != table.numel():
                continue
            compared["learned"] += 1
            rows = found.flatten(2).permute(0, 2, 1) if found.ndim == 4 and found.shape[1] == table.shape[-1] else found
            if not near(table, rows.reshape(table.shape), 1e-6):
                wrong.append(f"the table of {type(module).__name__} is not added row by row")
