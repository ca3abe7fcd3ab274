"""
All default configurations of transformers as from_config reads them, against the models' own code.

What is compared, without weights: frequencies of every rotary module (both ways: each of ours is theirs, each of theirs is
ours), tables of sinusoids, offsets and presence of learned tables, T5's and ALiBi's settings, groups of convolutions. Layouts
are compared by test_layouts_transformers.py, options of other operations (resample, sine_2d) by the tests of these operations,
not here. Run with -s to see what is not compared.
"""

import importlib
import inspect
import re
from collections import Counter
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pytest
import torch
from rotary_modules import code_of
from transformers import CONFIG_MAPPING, AutoModel

import posref
from posref import from_config, rope_frequencies

# What the default configurations are refused for, by what the message says.
REASONS = {
    "rotated channels": "a fraction of the head that is no even number of channels",
    "mrope_section": "sections that do not add up to the rotated pairs",
    "rope_parameters must be by layer type": "a default without rope parameters",
    "must have layer_types": "a default without layer types",
}
ROTARY = re.compile(r"Rotary|RopePosition|RoPEPosition")


class Outcome(NamedTuple):
    """What became of one configuration class."""

    directory: str
    answered: bool
    compared: Counter[str]
    wrong: list[str]


def nodes(config: Any) -> list[Any]:
    """A configuration and those inside it, at every depth."""
    inside = [getattr(config, key, None) for key in getattr(config, "sub_configs", {})]
    return [config, *(found for part in inside if hasattr(part, "to_dict") for found in nodes(part))]


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


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size == b.size and bool(np.allclose(np.sort(a.ravel()), np.sort(b.ravel()), rtol=2e-6, atol=1e-12))


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
        if not any(same(a, b) for b in theirs)
    ]
    if all(entry.options is not None for entry in entries):
        missing = [b for b in sure if not any(same(a, b) for a in ours)]
        wrong += [f"{b.size} frequencies of a module are in no entry, from {b.max():.3g} to {b.min():.3g}" for b in missing]


def built(config: Any) -> torch.nn.Module | None:
    """The model without values, or None where transformers cannot build it without other libraries."""
    try:
        with torch.device("meta"):
            return AutoModel.from_config(config)
    except (ValueError, ImportError, RuntimeError, AttributeError, NotImplementedError, TypeError, KeyError, OSError):
        return None


def offsets(model: torch.nn.Module, lengths: set[int]) -> set[int]:
    """The rows before that of position 0, of each table that an nn.Embedding holds and a name calls one of positions."""
    found = set()
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        table = (
            isinstance(module, torch.nn.Embedding)
            and re.search(r"pos|wpe", last)
            and not re.search(r"[xywh]_pos|box|rel", last)
        )
        if table and not re.search(r"Sinus", type(module).__name__):
            padding, plain = module.padding_idx, type(module) is torch.nn.Embedding
            own = 2 if plain and module.num_embeddings - 2 in lengths else int(getattr(module, "offset", 0))
            found.add(own or (0 if padding is None else padding + 1))
    return found


def compare_learned(config: Any, model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    ours = {e.options["offset"] for e in entries if e.operation == "learned" and e.options is not None}
    theirs = offsets(model, {getattr(node, "max_position_embeddings", None) for node in nodes(config)})
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
    queries = [name for name in names if "queries_embedder" in name]
    learned = any(entry.operation == "learned" for entry in entries)
    if learned:
        compared["a table"] += 1
        wrong += [] if theirs or queries or offsets(model, set()) else ["a learned table that the model does not have"]
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


def compare_buckets(model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    ours = {(e.options["bidirectional"], e.options["max_distance"]) for e in entries if e.operation == "t5_bias"}
    theirs = {
        (not getattr(m, "is_decoder", False), getattr(m, "relative_attention_max_distance", 128))
        for m in model.modules()
        if hasattr(m, "relative_attention_bias") and hasattr(m, "relative_attention_max_distance")
    }
    if ours and theirs:
        compared["t5_bias"] += 1
        if not theirs <= ours:
            wrong.append(f"T5's settings are {theirs}; got {ours}")


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
        for name, kind in vars(code).items():
            for dim in dims:
                if name == "sinusoids":
                    theirs = kind(9, dim)
                elif not inspect.isclass(kind) or kind.__module__ != code.__name__:
                    continue
                elif hasattr(kind, "get_embedding"):
                    theirs = kind.get_embedding(9, dim, *[None] * (len(inspect.signature(kind.get_embedding).parameters) - 2))
                elif hasattr(kind, "create_weight"):
                    theirs = kind(9, dim).create_weight()
                elif name == "SinusoidsPositionEmbedding":
                    theirs = kind(9, dim).positional_embedding
                else:
                    continue
                compared["sinusoidal"] += 1
                if not any(
                    np.allclose(np.asarray(table), theirs.numpy(), atol=2e-6) for table in ours if table.shape[-1] == dim
                ):
                    wrong.append(f"the table of {name} with {dim} columns is none of ours")


def outcome(model_type: str) -> Outcome:
    config = CONFIG_MAPPING[model_type]()
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
    named = {entry.operation for entry in entries}
    if not entries or named & {"learned", "t5_bias", "conv_positions"}:
        model = built(config)
        if model is not None:
            compare_tables(model, entries, compared, wrong)
            compare_learned(config, model, entries, compared, wrong)
            compare_buckets(model, entries, compared, wrong)
            compare_convolutions(model, entries, compared, wrong)
    return Outcome(directory, True, compared, wrong)


UNBUILT = ("gemma4_assistant", "nougat")  # their default configurations raise


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {model_type: outcome(model_type) for model_type in CONFIG_MAPPING if model_type not in UNBUILT}


def test_at_least_95_of_100_directories_are_answered_and_none_compared_is_wrong(outcomes: dict[str, Outcome]) -> None:
    directories = {one.directory for one in outcomes.values()}
    refused = {one.directory for one in outcomes.values() if not one.answered}
    wrong = {one.directory for one in outcomes.values() if one.wrong}
    compared = {one.directory for one in outcomes.values() if one.compared}
    print(f"\n{len(directories)} directories, {len(directories - refused)} answered, {len(compared)} compared,")
    print(
        f"{len(compared - wrong)} agreeing; by what was compared: {sum((one.compared for one in outcomes.values()), Counter())}"
    )
    print("refused:", *sorted(refused))
    print("wrong:", *(f"\n  {name}: {one.wrong}" for name, one in outcomes.items() if one.wrong))
    print("not compared:", *sorted(directories - refused - compared))
    assert len(directories - refused) >= 0.95 * len(directories)
    assert not wrong - set(EXCEPTIONS)


# Where ours and theirs differ, and why.
EXCEPTIONS = {
    "deepseek_v4": "its default has no layer of the type that rotates by the main base",
    "llama4": "its vision table has no frequencies, but complex numbers; see test_axial_models.py",
    "lxmert": "its table has a padding row, and its positions begin there",
    "minimax_m3_vl": "rotary_dim of the file, where transformers rotates the whole head (see rope_from_config)",
}


def test_alibi_is_that_of_bloom_and_mpt() -> None:
    bloom = importlib.import_module("transformers.models.bloom.modeling_bloom")
    (entry,) = from_config({"model_type": "bloom", "n_head": 12})["text"]
    assert entry is not None
    theirs = bloom.build_alibi_tensor(torch.ones(1, 5), 12, torch.float32)
    ours = posref.alibi(np.arange(5), np.arange(5), **(entry.options or {}))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6)
    mpt = importlib.import_module("transformers.models.mpt.modeling_mpt")
    (entry,) = from_config({"model_type": "mpt", "n_heads": 12})["text"]
    assert entry is not None
    ours = posref.alibi(np.arange(5), np.arange(-4, 1), **(entry.options or {}))
    np.testing.assert_allclose(ours, mpt.build_mpt_alibi_tensor(12, 5).numpy(), rtol=1e-6)
