"""
Write posref/models/tables/defaults.json, and propose rows for the model types of a new release of transformers.

    python tests/model_tables.py defaults   # in an environment that has the newest transformers; torch is not needed
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parents[1] / "posref" / "models" / "tables"
# Keys that readers name in code. Those of rows are found in the table. Bases and rope dicts are in the rows.
SIZES = {
    *("hidden_size", "embed_dim", "d_model", "n_embd", "num_heads", "num_attention_heads", "n_head", "n_heads", "head_dim"),
    *("encoder_num_attention_heads", "num_hidden_layers", "n_layer", "n_layers", "num_layers", "global_head_dim"),
    *(
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "original_max_position_embeddings",
        "model_max_length",
        "qk_rope_head_dim",
        "qk_nope_head_dim",
    ),
    *("swa_qk_rope_head_dim", "num_key_value_heads", "kv_channels", "rotary_dim", "no_rope_layer_interval", "sliding_window"),
    *("max_window_layers", "use_sliding_window", "attention_chunk_size"),
}
ROPE = {"rope_theta", "rope_parameters", "rope_scaling", "partial_rotary_factor", "layer_types"}


def table(name: str) -> dict[str, Any]:
    """Return a table of posref by name."""
    found: dict[str, Any] = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def text_of(rows: Mapping[str, Any]) -> str:
    """Return a table as its file has it, one row a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def keys_of(given: Any) -> Iterator[str]:
    """Yield the keys of files that a row names."""
    if isinstance(given, dict):
        for name, value in given.items():
            if name == "key":
                yield from [value] if isinstance(value, str) else value
            elif name in ("when", "defaults"):
                yield from value
            elif name in ("head", "keys", "head_key", "needs"):
                for key in [value] if isinstance(value, str) else value:
                    yield from [key] if isinstance(key, str) else key
            else:
                yield from keys_of(value)
    elif isinstance(given, list):
        for value in given:
            yield from keys_of(value)


def class_defaults(kind: Any, keys: set[str]) -> dict[str, Any]:
    """Return what a configuration class gives missing keys, and under "names" other names of its keys."""
    found = {}
    for field in dataclasses.fields(kind):
        value = field.default if field.default is not dataclasses.MISSING else None
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if field.name in keys and value is not None and isinstance(value, str | int | float | bool | list | tuple):
            found[field.name] = list(value) if isinstance(value, tuple) else value
    names = {other: own for other, own in (getattr(kind, "attribute_map", None) or {}).items() if other in keys or own in keys}
    return {**dict(sorted(found.items())), **({"names": names} if names else {})}


def defaults() -> dict[str, Any]:
    """Return the defaults of every type in the table that the installed transformers has, parts that no file names included."""
    from transformers import CONFIG_MAPPING

    types = table("types")
    found: dict[str, Any] = {}

    def visit(name: str, kind: Any) -> None:
        row = types.get(name)
        if row is None or name in found or not dataclasses.is_dataclass(kind):
            return
        row = types[row.get("like", name)]
        keys = SIZES | ({key for key in keys_of(row) if "." not in key} - ROPE)
        found[name] = class_defaults(kind, keys)
        specs = getattr(kind, "sub_configs_defaults", None) or {}
        absent = {}
        for key, part in row.get("parts", {}).items():
            spec = specs.get(key)
            if spec is None:
                continue
            if isinstance(part, str):
                visit(part, spec.config_class)
            wanted = SIZES | ROPE | set(keys_of(types.get(spec.model_type, {})))
            given = {n: v for n, v in spec.init_kwargs.items() if n in wanted}
            if given:
                absent[key] = given
        if absent:
            found[name]["parts"] = absent

    for name in [*CONFIG_MAPPING.keys()]:  # its length and iteration need torch
        visit(name, CONFIG_MAPPING[name])
    return {name: row for name, row in sorted(found.items()) if row}


def main(arguments: list[str]) -> None:
    """Run a command by its name."""
    if arguments == ["defaults"]:
        (TABLES / "defaults.json").write_text(text_of(defaults()), encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
