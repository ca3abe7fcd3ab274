"""
What posref knows about model types, GGUF architectures and presets: one row for each, in the folder ``tables``.

The default base of a model type stands in its row of tables/types.json, as ``rope`` / ``defaults`` / ``rope_theta``, or in the
rope dict under ``silent``. For all others it is `BASE` in config.py. tables/class_defaults.json has the defaults of other keys.

Everything about model types was read in transformers 5.23.0 (the configuration and modeling files), except chatglm and kimi_k2,
whose code comes with their weights, and types with a ``stack``, whose code is in that serving stack.
"""

import difflib
import importlib
import json
import re
from collections.abc import Container, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from posref.types import Layout

CLOSE, NEAR = 0.85, 0.7  # of two spellings, as difflib measures: for a suggestion, and to be named
ROTARY = ("rope", "mrope", "axial_rope", "mixed_rope")


@cache
def table(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of a table, a file in ``tables`` that is read once, by its name: "types", "gguf" or another."""
    path = Path(__file__).with_name("tables") / f"{name}.json"
    rows: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def model_type(name: Any) -> Mapping[str, Any]:
    """
    Return the row of a model type, empty for an unknown one.

    For `posref.from_config`:

    - ``like`` is another type with the same encodings. ``rows`` has a dict for each encoding: ``component``; ``operation``,
      null if nothing has positions; ``options``, as values or as the keys that have them in the file; ``read``, the function
      of `posref.models.readers` that reads it, or "odd" (`posref.models.odd_rows`), with the number of ``axes``; ``when``, the
      values of keys for which the row holds; ``needs``, keys that must be there; ``on``, the layers that have it, a word of
      `posref.models.layers`; ``keys``, others that are read; ``conventions``, as in `Entry`; ``source``, a file and line of
      transformers/models.
    - ``names`` has other names of keys. ``stack`` is the code of a serving stack that has a type which transformers has not;
      ``refused``, why a type is not read.
    - ``sides`` says which keys a query sees: see `posref.models.sides`.
    - ``parts`` has the keys of nested configurations: see `posref.models.parts`. ``without`` has the components of these parts
      that the model leaves out; ``defaults``, values of missing keys besides those in tables/class_defaults.json.

    ``rope`` has what `posref.configs` knows. Each layout was checked by running that model's rotary module and apply function.

    - ``layout`` of the weights as transformers stores them (Meta's own Llama files are interleaved); ``half_unless``, a key
      that is false for "half"; ``interleaved_if_false`` and ``interleaved_if_true``, a key that has this value for
      "interleaved"; ``also``, other options of `posref.rope`; ``mrope``, the arrangement and the default
      sections, in the order of the file, of a model with several position axes.
    - ``defaults`` for missing keys that tables/class_defaults.json has not, where they are not `BASE`, the whole head and head
      size hidden_size // num_attention_heads; ``silent``, the rope dict of a file that has none, unless it is
      ``{"rope_type": "default"}``.
    - ``bases``, for old files with one base per layer type: the types, the keys of their bases, and whether `rope_scaling`
      applies.
    - ``softmax``, true if the model multiplies the softmax scale by ``g(mscale_all_dim)**2``; ``alpha``, true if "dynamic" with
      "alpha" means `NTKAlpha`.

    ``layers`` says which layers rotate, in words: see `posref.models.layers`. What only one model does is a function, in the
    modules that begin with "odd".
    """
    return table("types").get(str(name), {})


@cache
def model_table() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the model types that `posref.from_config` knows."""
    return {name: row for name, row in table("types").items() if not row.keys() <= {"rope", "layers"}}


def why_not(name: str) -> dict[str, str]:
    """Return why posref does not define an encoding, as a convention. Empty for operations."""
    row = table("undefined").get(name)
    return {} if row is None else {"not defined": row["reason"]}


@cache
def layouts() -> dict[str, Layout]:
    """Return the layout of every model type with one position for each token, ordered by layout."""
    rotary = {name: row["rope"] for name, row in table("types").items() if "layout" in row.get("rope", {})}
    ordered = sorted(rotary, key=lambda name: ("half", "interleaved", "interleaved_to_half").index(rotary[name]["layout"]))
    return {name: rotary[name]["layout"] for name in ordered if "mrope" not in rotary[name]}


def mropes() -> list[str]:
    """Return the model types whose tokens have positions on several axes."""
    return [name for name, row in table("types").items() if "mrope" in row.get("rope", {})]


def remedy(model: str, known: Iterable[str]) -> str:
    """
    Return what to do about an unknown model type.

    Other spellings are suggested only where letters differ: the types of another version or of another part have other options
    (qwen2_vl and qwen3_vl, minicpm and minicpm3). If several are close, they must have equal options too. A type that has
    other hyphens, dots or capitals alone is suggested before all others, also if another function reads it. Where none is
    suggested, near names are listed as names.
    """
    letters = _letters(model)  # once: a type in a file may be of any length
    spelled = [name for name in table("types") if _letters(name) == letters]
    near = difflib.get_close_matches(model, sorted(known), n=3, cutoff=NEAR)
    close = spelled or [
        name for name in difflib.get_close_matches(model, list(known), n=3, cutoff=CLOSE) if _parts(name) == _parts(model)
    ]
    rows = [[{**row, "source": None} for row in model_type(name).get("rows", ())] for name in close]
    alike = {json.dumps(of_type) for of_type in rows}
    advice = "If the model runs another type's code, set model_type to that type."
    if close and len(alike) == 1:
        return f"{advice} Did you mean {' or '.join(map(repr, close))}?"
    if near or close:
        return f"{advice} Types with a name like this one, whose code may be another: {', '.join(map(repr, near or close))}."
    return f"{advice} No known type is close to this one."


def _letters(name: str) -> str:
    return re.sub(r"[-_. ]", "", name.lower())


def _parts(name: str) -> tuple[int, list[str]]:
    """Return the number of words of a type, and its numbers."""
    return len(name.split("_")), re.findall(r"\d+", name)


def positions_of(model: str) -> str | None:
    """Return in words the encodings of a model without rotary embeddings. None for other models and unknown types."""
    known = model_type(model_type(model).get("like", model))
    operations = [
        row["operation"] for row in known.get("rows", ()) if not row["component"].endswith((" mask", " scale", " softcap"))
    ]
    if not operations or any(name in ROTARY for name in operations):
        return None
    named = dict.fromkeys(name for name in operations if name is not None)
    return " and ".join(named) if named else "none"


def parent_of(model: str, known: Container[str]) -> str | None:
    """Return the known type whose class the configuration of `model` extends in the installed transformers, or None."""
    try:
        kind = importlib.import_module("transformers").CONFIG_MAPPING[model]
    except (ImportError, AttributeError, KeyError, RuntimeError):
        return None
    types = [str(getattr(base, "model_type", "")) for base in kind.__mro__[1:]]
    return next((name for name in types if name != model and name in known), None)
