"""
Write posref/models/tables/class_defaults.json, and propose rows for the model types of a new release of transformers.

    python tests/model_tables.py defaults   # in an environment that has the newest transformers; torch is not needed
    python tests/model_tables.py propose    # the types that the table lacks, as JSON lines

A proposal is the row of the model that the new one inherits from, by its modular file, and the layout of its apply function, by
a hash of its syntax tree. It is no row: read the code, run the model's rotation against `posref.rope`, and write the row.
"""

import ast
import copy
import dataclasses
import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
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
            elif name in ("keys", "needs"):
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


# ---- proposals ---------------------------------------------------------------------------------------------------------------
KINDS = ("Attention", "RotaryEmbedding", "Embeddings", "Config")  # of classes, the best evidence first
APPLY = re.compile(r"^apply_\w*rotary\w*$|^apply_rope\w*$")
IMPORTED = re.compile(r"^(\w+)\.(?:modeling|configuration|modular)_\w+$")


@cache
def parents(folder: Path) -> list[tuple[str, str, str]]:
    """Return the classes of a modular file that inherit from another model's: kind, class, and the other model's folder."""
    file = folder / f"modular_{folder.name}.py"
    if not file.exists():
        return []
    tree = ast.parse(file.read_text(encoding="utf-8"))
    origin = {
        alias.asname or alias.name: found[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 2 and (found := IMPORTED.match(node.module or ""))
        for alias in node.names
    }
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bases = [(node.name, base.id) for node in classes for base in node.bases if isinstance(base, ast.Name)]
    return [
        (kind, name, origin[base])
        for kind in KINDS
        for name, base in bases
        if name.endswith(kind) and base in origin and origin[base] != folder.name
    ]


class _Plain(ast.NodeTransformer):
    """Removes what does not compute: docstrings, decorators and annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Strip a function."""
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant) and len(node.body) > 1:
            node.body = node.body[1:]
        return node


@cache
def rotation_hash(folder: Path) -> str | None:
    """Return a hash of the one function that applies a rotation, with all that it calls. None if there are several."""
    file = folder / f"modeling_{folder.name}.py"
    if not file.exists():
        return None
    functions = {
        node.name: node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
    }
    roots = [name for name in functions if APPLY.match(name) and "vision" not in name]
    if len(roots) != 1:
        return None
    reached, open_ = list[str](), roots
    while open_:
        reached.append(name := open_.pop())
        calls = [n.func.id for n in ast.walk(functions[name]) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        open_ += [called for called in dict.fromkeys(calls) if called in functions and called not in (*reached, *open_)]
    text = "\n".join(ast.dump(_Plain().visit(copy.deepcopy(functions[name]))) for name in reached)
    return hashlib.sha256(text.encode()).hexdigest()


def propose(types: Mapping[str, Any], wanted: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    """Yield a proposal for every type of the installed transformers that is `wanted`."""
    from transformers import CONFIG_MAPPING

    folder_of = {name: Path(inspect.getfile(CONFIG_MAPPING[name])).parent for name in [*CONFIG_MAPPING.keys()]}
    layouts: dict[str | None, set[str]] = {}
    for name, folder in folder_of.items():
        layout = types.get(name, {}).get("rope", {}).get("layout")
        if layout is not None and not wanted(name):
            layouts.setdefault(rotation_hash(folder), set()).add(layout)
    for name, folder in folder_of.items():
        if not wanted(name):
            continue
        found = next(((kind, base) for kind, _, base in parents(folder)), None)
        near = [n for n, other in folder_of.items() if found and other.name == found[1] and n in types and not wanted(n)]
        ending = name.removeprefix(folder.name)
        parent = next((n for n in near if n.removeprefix(folder_of[n].name) == ending), near[0] if len(near) == 1 else None)
        known = layouts.get(rotation_hash(folder), set())
        row = copy.deepcopy(types[parent]) if parent else None
        for one in (row or {}).get("rows", ()):
            one |= {"source": f"{folder.name}/modeling_{folder.name}.py", "proposed": True}
        yield {
            "type": name,
            "parent": parent,
            "by": found and found[0],
            "layout": next(iter(known)) if len(known) == 1 else None,
            "row": row,
        }


def main(arguments: list[str]) -> None:
    """Run a command by its name."""
    if arguments == ["defaults"]:
        (TABLES / "class_defaults.json").write_text(text_of(defaults()), encoding="utf-8")
    elif arguments == ["propose"]:
        known = table("types")
        for proposal in propose(known, lambda name: name not in known):
            print(json.dumps(proposal))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
