"""Calls that even the narrowest kernels answer: heads of 64 and 128 channels, positions from 0 on, causal masks, 2**k heads."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model import Case, Flag
from ..tools.numbers import floats, seed_of
from .sample import Places, call, shifted, spread

FLAGS = {
    "usual-size": Flag("a head of 64 or 128 channels with its pairs, channels or last vector wrong"),
    "from-zero": Flag("a prompt's own positions one off, reversed or scaled"),
    "causal": Flag("the diagonal left out, or the mask of a decode step begun at the first key", "flash-attention before 2.1"),
    "power-of-two-heads": Flag("the ratio of slopes fixed at that of 8 heads, or heads in another order"),
    "square": Flag("queries that do not see their own key, or axes exchanged, where queries are as many as keys"),
    "two-axes": Flag("height and width exchanged, or a third axis read past the end"),
}

LAYOUTS = ("half", "interleaved", "interleaved_to_half")
FAR = (4096, 7, 8191, 300, 32767)
SIZES: dict[str, tuple[int, int, int, Places]] = {  # head size, heads, tokens, positions
    "64": (64, 2, 3, spread),
    "64-chunk": (64, 1, 5, shifted(37)),
    "64-decode": (64, 3, 1, shifted(258)),
    "64-far": (64, 1, 5, lambda count: np.asarray(FAR[:count])),
    "64-zero": (64, 2, 4, shifted(0)),
    "128": (128, 1, 3, spread),
    "128-decode": (128, 2, 1, shifted(2049)),
    "128-zero": (128, 1, 3, shifted(0)),
}
PROMPTS: dict[str, tuple[tuple[int, ...], int]] = {"short": ((3,), 10), "long": ((1, 33), 6), "heads": ((2, 3, 7), 18)}
GRID = ((0, 0, 0, 1, 1, 1, 2, 2, 2), (3, 5, 4, 3, 5, 4, 3, 5, 4))


def _case(op: str, name: str, flag: str, params: dict[str, Any], inputs: dict[str, Any], comment: str = "") -> Case:
    return Case(f"{op}/usual/{name}", params, inputs, (flag,), comment)


def _sizes(layout: str) -> Iterator[Case]:
    """Yield rotations of whole heads of 64 and 128 channels, without scaling."""
    for name, (head, heads, tokens, places) in SIZES.items():
        x = floats(heads, tokens, head, seed=seed_of(name + layout))
        where = f"{layout.replace('_', '-')}-{name}"
        base = 500000.0 if name.endswith(("chunk", "zero")) else 10000.0
        yield _case("rope", where, "usual-size", {"layout": layout, "base": base}, {"x": x, "positions": places(tokens)})
        tables = {n: floats(tokens, head // 2, seed=seed_of(where + n)) / 4 for n in ("cos", "sin")}
        yield _case("apply_rope", where, "usual-size", {"layout": layout}, {"x": x, **tables})


def _prompts(layout: str) -> Iterator[Case]:
    """Yield rotations of whole prompts, at positions 0, 1, 2, ..."""
    for name, (leading, head) in PROMPTS.items():
        x = floats(*leading, head, seed=seed_of(name + layout + "prompt"))
        positions = np.arange(leading[-1])
        where = f"{layout.replace('_', '-')}-prompt-{name}"
        yield _case("rope", where, "from-zero", {"layout": layout, "base": 20000.0}, {"x": x, "positions": positions})


def _tables() -> Iterator[Case]:
    """Yield tables of 32 and 64 frequencies."""
    for name, (head, _, tokens, places) in SIZES.items():
        _, inputs = call("rope_table", name, places=places, T=tokens, n=head // 2, P=(tokens,))
        yield _case("rope_table", name, "usual-size", {}, inputs)


def _biases() -> Iterator[Case]:
    """Yield biases of as many heads as a power of two."""
    for heads in (2, 4, 64):
        yield _case("alibi_slopes", f"heads-{heads}", "power-of-two-heads", {"heads": heads}, {})
    for form in ("distance", "causal", "key"):
        for heads, queries, keys in ((2, 3, 5), (4, 5, 3), (8, 1, 7), (16, 3, 3), (1, 6, 4)):
            q, k = np.arange(queries) + max(0, keys - queries), np.arange(keys)
            params = {"heads": heads, "form": form}
            inputs = {"q_positions": q, "k_positions": k}
            yield _case("alibi", f"{form}-{heads}", "power-of-two-heads", params, inputs)


def _attention() -> Iterator[Case]:
    """Yield attention with causal masks, the last query at the last key, and without mask where queries are as many as keys."""
    shapes = {"square": (2, 2, 5, 5, 6), "groups": (4, 2, 3, 3, 10), "decode": (2, 1, 1, 6, 64), "chunk": (3, 3, 2, 7, 12),
              "64": (2, 1, 4, 4, 64), "128": (1, 1, 3, 3, 128)}  # fmt: skip
    for name, (heads, groups, queries, keys, head) in shapes.items():
        inputs = {
            letter: floats(n, size, head, seed=seed_of(name + letter)) * (0.25 if letter == "q" else 1.0)
            for letter, n, size in (("q", heads, queries), ("k", groups, keys), ("v", groups, keys))
        }
        mask = np.tril(np.ones((queries, keys), dtype=bool), keys - queries)
        yield _case("attention", f"causal-{name}", "causal", {}, {**inputs, "mask": mask})
        if queries == keys:
            yield _case("attention", name, "square", {}, inputs)
            yield _case("attention_logits", name, "square", {}, {n: inputs[n] for n in "qk"})


def _images() -> Iterator[Case]:
    """Yield positions of two coordinates."""
    for name, sections, layout in (("half", (3, 4), "half"), ("interleaved", (4, 2), "interleaved")):
        x = floats(9, 2 * sum(sections), seed=seed_of(name + "image"))
        params = {"sections": list(sections), "arrangement": "chunked", "layout": layout, "base": 100.0}
        yield _case("mrope", f"image-{name}", "two-axes", params, {"x": x, "positions": np.asarray(GRID)})


CASES = (
    *(case for layout in LAYOUTS for make in (_sizes, _prompts) for case in make(layout)),
    *_tables(),
    *_biases(),
    *_attention(),
    *_images(),
)
