"""
All default configurations of transformers as from_config reads them, against the models' own code.

    python tests/config_outcomes.py            # a line for each directory, then counts; some minutes
    python tests/config_outcomes.py llama t5   # of these directories alone

Compared by value, without weights: frequencies of every rotary module (both ways: each of ours is theirs, each of theirs is
ours), rotations of texts, indexers and images, tables of sinusoids, sinusoids of cells and of masked images, biases of T5 and
ALiBi, offsets of learned tables, that their rows are added in order, groups of convolutions, and how most tables are fitted to
another grid. Encodings that posref does not define are there if, and only if, the model has the parameters or modules of that
encoding. Where a default configuration does not fit together, FITTING has another.

A line says "equal" if nothing differs and every absolute or rotary operation of the directory is compared by value, "in part"
if one is not, and names it. That a table is there does not count. Some operations have tests of their own: see AFTER.
"""

import inspect
import re
import sys
from collections import Counter
from itertools import product
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import torch
from model_comparisons import (
    FITTING,
    built,
    codes,
    compare_alibi,
    compare_buckets,
    compare_marks,
    compare_named,
    compare_own_rotations,
    compare_own_tables,
    compare_sines_of_cells,
    compare_sines_of_masks,
    is_whole,
    nodes,
)
from resample_comparisons import compare_added, compare_resampled
from rotary_modules import code_of
from rotation_comparisons import compare_axial, compare_layouts
from transformers import CONFIG_MAPPING

import posref
from posref import from_config, rope_frequencies
from posref.spec import REGISTRY

# What the default configurations are refused for, by what the message says.
REASONS = {
    "rotated channels": "a fraction of the head that is no even number of channels",
    "mrope_section": "sections that do not add up to the rotated pairs",
    "rope_parameters must have an entry for every type": "a default without rope parameters",
    "must have layer_types": "a default without layer types",
}
ROTARY = re.compile(r"Rotary|RopePosition|RoPEPosition")


class Outcome(NamedTuple):
    """What became of one configuration class."""

    directory: str
    answered: bool
    compared: Counter[str]
    wrong: list[str]
    operations: frozenset[str] = frozenset()


def theirs_rotary(config: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """
    The frequencies of all rotary modules that take one of the configurations.

    First those whose class says which configuration it takes, then those that say another and could be built from this one: the
    latter may be of modules that no model has.
    """
    sure, perhaps = list[np.ndarray](), list[np.ndarray]()
    for node in nodes(config):
        try:
            code = code_of(node)
        except (ImportError, KeyError, AttributeError):
            continue
        for kind in vars(code).values():
            if not (inspect.isclass(kind) and ROTARY.search(kind.__name__) and kind.__module__ == code.__name__):
                continue
            try:
                wanted = get_type_hints(kind.__init__, vars(code)).get("config")
                module = kind(node)
            except (AttributeError, KeyError, NameError, TypeError, ValueError):
                continue
            buffers = [(name, buffer) for name, buffer in module.named_buffers() if "original" not in name]
            found = [buffer.double().numpy() for name, buffer in buffers if name.endswith("inv_freq")]
            (sure if wanted is type(node) else perhaps).extend(found)
    return sure, perhaps


def ours_rotary(entries: list[Any]) -> list[np.ndarray]:
    """The frequencies of all entries that rotate; of axial ones those of each axis."""
    found = []
    for entry in entries:
        options = entry.options
        if entry.operation == "axial_rope":
            width = sum(options["dims"]) if options["allocation"] == "shared" else options["dims"][0]
            found.append(np.asarray(rope_frequencies(width, base=options["base"])[0]))
        elif entry.operation in ("rope", "mrope"):
            width = options["rotary_dim"] if entry.operation == "rope" else 2 * sum(options["sections"])
            found.append(np.asarray(rope_frequencies(width, base=options["base"], scaling=options["scaling"], length=1)[0]))
    return found


def same(entry: Any, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether frequencies are equal pair by pair; as sets those of several axes and of ERNIE, which models arrange later."""
    a, b = ours.ravel(), theirs.ravel()
    if entry.operation == "axial_rope" or entry.options.get("arrangement") == "ernie":
        a, b = np.sort(a), np.sort(b)
    # float32 powers: an exponent rounded once counts ln(base) times, up to 18 units of 2^-24, and more roundings on both sides
    return a.size == b.size and bool(np.allclose(a, b, rtol=2e-6, atol=1e-12))


def compare_rotary(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    rotating = [entry for entry in entries if entry.operation in ("rope", "mrope", "axial_rope") and entry.options is not None]
    ours, (sure, perhaps) = ours_rotary(rotating), theirs_rotary(config)
    theirs = [*sure, *perhaps]
    if not theirs or not rotating:
        return
    compared["rotary"] += 1
    wrong += [
        f"frequencies of {e} are in no module"
        for e, a in zip(rotating, ours, strict=True)
        if e.operation != "axial_rope" and not any(same(e, a, b) for b in theirs)  # these rotate in compare_axial
    ]
    if all(entry.options is not None for entry in entries):
        missing = [b for b in sure if not any(same(e, a, b) for e, a in zip(rotating, ours, strict=True))]
        wrong += [f"{b.size} frequencies of a module are in no entry, from {b.max():.3g} to {b.min():.3g}" for b in missing]


def first_rows(config: Any) -> set[int]:
    """The rows of a table with a padding row that the model's own embeddings take for the first token of a text."""
    found = set()
    for node, code in codes(config):
        for kind in vars(code).values():
            if inspect.isclass(kind) and kind.__name__.endswith("Embeddings") and kind.__module__ == code.__name__:
                try:
                    module = kind(node)
                    table = module.position_embeddings
                    if table.padding_idx is None:
                        continue
                    table.register_forward_pre_hook(lambda _, rows: found.add(int(rows[0].flatten()[0])))
                    module(input_ids=torch.tensor([[5, 6]]), token_type_ids=torch.zeros(1, 2, dtype=torch.long))
                except (AttributeError, TypeError, RuntimeError, ValueError, IndexError):
                    continue
    return found


def offsets(model: torch.nn.Module, lengths: set[int], begin: set[int]) -> set[int]:
    """The rows before that of position 0, of each table that an nn.Embedding holds and a name calls one of positions."""
    found = set[int]()
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        table = (
            (isinstance(module, torch.nn.Embedding) or hasattr(module, "padding_idx"))  # I-BERT's is another class
            and re.search(r"pos|wpe", last)
            and not re.search(r"[xywh]_pos|box|rel", last)
        )
        if table and not re.search(r"Sinus", type(module).__name__):
            padding, plain = module.padding_idx, type(module) is torch.nn.Embedding
            own = 2 if plain and module.num_embeddings - 2 in lengths else int(getattr(module, "offset", 0))
            found |= {own} if own else {0} if padding is None else begin or {padding + 1}
    return found


def compare_learned(config: Any, model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    ours = {e.options["offset"] for e in entries if e.operation == "learned" and e.options is not None}
    theirs = offsets(model, {getattr(node, "max_position_embeddings", None) for node in nodes(config)}, first_rows(config))
    if ours and theirs:
        compared["learned"] += 1
        if not theirs <= ours:
            wrong.append(f"offsets of learned tables are {sorted(theirs)}; got {sorted(ours)}")


TABLE = re.compile(
    r"(^|[._])(abs_)?(wpe|wpe_\w*|\w*pos(ition(al)?|itions)?_?(emb|enc|table)\w*|pos_embed\w*|class_pos_emb)(\.weight|\.weights)?$"
)
OTHER = re.compile(r"rel|conv|query_position|linear_pos|pos_proj|norm|box|rotary|mask_emb|image_position")


def compare_tables(model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """A learned table is there if, and only if, we say so; where nothing has positions there is none, nor any other."""
    names = [name for name, _ in model.named_parameters()]
    theirs = [name for name in names if TABLE.search(name) and not OTHER.search(name)]
    queries = [name for name in names if re.search(r"queries_embedder|query_position_embeddings|query_embeddings", name)]
    learned = any(entry.operation == "learned" for entry in entries)
    found = theirs or queries or offsets(model, set(), set())
    if learned and (found or is_whole(model)):
        compared["a table"] += 1
        wrong += [] if found else ["a learned table that the model does not have"]
    elif not entries:
        compared["no positions"] += 1
        wrong += [f"no positions, but the model has {name}" for name in theirs[:2]]


def compare_convolutions(model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    ours = {e.options["groups"] for e in entries if e.operation == "conv_positions" and e.options is not None}
    theirs = {m.groups for n, m in model.named_modules() if isinstance(m, torch.nn.Conv1d) and "pos_conv" in n}
    if ours and theirs:
        compared["conv_positions"] += 1
        if ours != theirs:
            wrong.append(f"groups are {theirs}; got {ours}")


def compare_sinusoids(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Tables that a class can be asked for, of 9 rows."""
    given = [dict(e.options) for e in entries if e.operation == "sinusoidal" and e.options is not None]
    ours = [posref.sinusoidal(np.arange(9), options.pop("dim"), **options) for options in given]
    dims = {table.shape[-1] for table in ours}
    for node in nodes(config) if ours else ():
        try:
            code = code_of(node)
        except (ImportError, KeyError, AttributeError):
            continue
        for (name, kind), dim in product(vars(code).items(), dims):
            theirs = _sinusoids_of(name, kind, dim, code)
            if theirs is None:
                continue
            compared["sinusoidal"] += 1
            tables = [np.asarray(table) for table in ours if table.shape[-1] == dim]
            # sines of at most 1, of angles below 9 that float32 rounds by 5e-7, from frequencies off by as much
            if not any(np.allclose(table, theirs.numpy(), rtol=0, atol=2e-6) for table in tables):
                wrong.append(f"the table of {name} with {dim} columns is none of ours")


def _sinusoids_of(name: str, kind: Any, dim: int, code: Any) -> torch.Tensor | None:
    """Return the table of 9 rows that a name in a module of transformers makes; None if it makes none."""
    if name in ("sinusoids", "create_sinusoidal_positions"):
        return kind(9, dim)
    if not inspect.isclass(kind) or kind.__module__ != code.__name__:
        return None
    if hasattr(kind, "get_embedding"):
        return kind.get_embedding(9, dim, *[None] * (len(inspect.signature(kind.get_embedding).parameters) - 2))
    if hasattr(kind, "create_weight"):
        return kind(9, dim).create_weight()
    return kind(9, dim).positional_embedding if name == "SinusoidsPositionEmbedding" else None


def outcome(model_type: str) -> Outcome:
    config = CONFIG_MAPPING[model_type](**FITTING.get(model_type, {}))
    directory = type(config).__module__.split(".")[-2]
    compared, wrong = Counter[str](), list[str]()
    try:
        found = from_config({**config.to_dict(), "model_type": model_type})
    except ValueError as error:
        known = any(words in str(error) for words in REASONS)
        return Outcome(directory, False, compared, [] if known else [f"refused: {error}"])
    entries = [entry for listed in found.values() for entry in listed if entry is not None]
    compare_rotary(config, entries, compared, wrong)
    compare_sinusoids(config, entries, compared, wrong)
    compare_layouts(config, found, compared, wrong)
    for compare in (compare_axial, compare_resampled, compare_added, compare_own_tables, compare_own_rotations):
        compare(config, entries, compared, wrong)
    compare_alibi(config, entries, compared, wrong)
    compare_named(config, entries, compared, wrong)
    named = {entry.operation for entry in entries}
    model = built(config) if not named or named - {"rope", "mrope"} else None
    compare_sines_of_cells(config, model, entries, compared, wrong)
    if model is not None:
        compare_tables(model, entries, compared, wrong)
        compare_learned(config, model, entries, compared, wrong)
        compare_buckets(model, entries, compared, wrong)
        compare_convolutions(model, entries, compared, wrong)
        compare_marks(model, entries, compared, wrong)
        compare_sines_of_masks(model, entries, compared, wrong)
    return Outcome(directory, True, compared, wrong, frozenset(named))


UNBUILT = ("gemma4_assistant", "nougat")  # their default configurations raise
# Where ours and theirs differ, and why.
EXCEPTIONS = {"minimax_m3_vl": "rotary_dim of the file, where transformers rotates the whole head (see rope_from_config)"}
# What cannot be run, and why.
NOT_RUN = {
    "dinat": "its module needs the natten library",
    "granitemoehybrid": "its layers are of linear attention, without positions, unless the file says otherwise",
    "timm_backbone": "the encoding is that of the timm model that the file names",
    "timm_wrapper": "the encoding is that of the timm model that the file names",
}
ROTATED = {"rotary", "layout", "layout of an indexer", "rotation"}  # what compares "rope" and "mrope"
# Compared in test_rotated.py and test_resample_transformers.py; the softmax factor in test_layouts_transformers.py.
AFTER = {posref.mla_logits.__name__, posref.rotated_values.__name__, posref.resample.__name__}
KNOWN = {op for op, encoding in REGISTRY.items() if encoding.family in ("absolute", "rotary")} - AFTER


def missed(outcomes: list[Outcome]) -> list[str]:
    """The absolute and rotary operations of a directory of which no value was compared."""
    asked = set[str]().union(*(one.operations for one in outcomes)) & KNOWN
    values = set[str]().union(*(one.compared for one in outcomes))
    return sorted(op for op in asked if not ({op} | (ROTATED if op in ("rope", "mrope") else set())) & values)


def verdict(directory: str, outcomes: list[Outcome]) -> str:
    """What a line says of a directory."""
    wrong = [text for one in outcomes for text in one.wrong]
    asked = set[str]().union(*(one.operations for one in outcomes)) & KNOWN
    if wrong:
        known = f" ({EXCEPTIONS[directory]})" if directory in EXCEPTIONS else ""
        return f"differs{known}: {'; '.join(dict.fromkeys(wrong))}"
    if directory in NOT_RUN:
        return f"not run: {NOT_RUN[directory]}"
    if not asked:
        return "no absolute or rotary encoding"
    left = missed(outcomes)
    if set(left) == asked:
        return f"not compared: {', '.join(left)}"
    return f"in part: not {', '.join(left)}" if left else f"equal: {', '.join(sorted(asked))}"


def directories() -> dict[str, list[str]]:
    """The model types of each directory."""
    found: dict[str, list[str]] = {}
    for model_type in CONFIG_MAPPING:
        if model_type not in UNBUILT:
            found.setdefault(CONFIG_MAPPING[model_type].__module__.split(".")[-2], []).append(model_type)
    return found


def main(names: list[str]) -> None:
    counts = Counter[str]()
    for directory, model_types in sorted(directories().items()):
        if not names or directory in names:
            said = verdict(directory, [outcome(model_type) for model_type in model_types])
            counts[said.partition(":")[0].partition(" (")[0]] += 1
            print(f"{directory}: {said}", flush=True)
    print(*(f"{count} {word}" for word, count in counts.most_common()), sep=", ")


if __name__ == "__main__":
    main(sys.argv[1:])
