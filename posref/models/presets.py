"""
Named parameters of released models, each with the source of its values: ``posref.presets["deepseek-v3"]``.

All values were checked against a file or code. For any other model, pass its config.json to `posref.rope_from_config`.

A row of tables/presets.json has the arguments of ``rope`` or ``mrope``, with the fields of a scaling that are not its defaults;
``verified`` and ``note``; ``sizes``, and where they were read; ``softmax``, true if the model multiplies the softmax scale by
``g(mscale_all_dim)**2``. DeepSeek-V3's longest context follows from its YaRN: 40 times 4096 tokens.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from posref.models.model_types import table
from posref.models.rope_scaling import softmax_factor, table_factor
from posref.scaling import RECORDS, Scaling, YaRN

MARKS = {
    "A": "code of the model's authors",
    "H": "configuration class of transformers 5.23.0",
    "L": "configuration table of litgpt 0.5.13",
    "T": "model builder of torchtune 0.6.1, torchtitan, Megatron-Bridge or PaddleFormers",
    "G": "config.json quoted in a public repository",
    "F": "metadata of a GGUF file, quoted in a public repository",
}


@dataclass(frozen=True)
class Sizes:
    """
    The sizes of one model's attention.

    `heads` and `key_heads` are the numbers of query heads and key heads. `head_size` is the number of channels of `x` in
    `posref.rope`. With multi-head latent attention `x` is the rotated part only, and its keys have one head. `longest` is the
    longest context, in tokens.
    """

    heads: int
    key_heads: int
    head_size: int
    longest: int


@dataclass(frozen=True)
class Preset:
    """
    The rotary parameters of one model, or of one type of its layers.

    If layers differ, the name ends with their type: "-full" or "-sliding". DeepSeek-V4 has "-main", its layers with a sliding
    window only, and "-compress".

    `rope` has the keyword arguments of `posref.rope`, or `mrope` those of `posref.mrope`; the other is None. For LongRoPE add
    the ``length`` of your call. `factors` is what `posref.configs.factors` returns. `sizes` has the heads and the longest
    context, or is None if no source has them. `verified` says where the values were read, in letters of `MARKS`. `source` says
    the same in words. `note` has anything else to know. `op` and `options` are the operation and its keyword arguments.
    """

    name: str
    rope: Mapping[str, Any] | None
    mrope: Mapping[str, Any] | None
    factors: Mapping[str, float]
    sizes: Sizes | None
    verified: str
    source: str
    note: str

    @property
    def op(self) -> str:
        """The operation whose keyword arguments the preset has."""
        return "mrope" if self.rope is None else "rope"

    @property
    def options(self) -> Mapping[str, Any]:
        """The keyword arguments of the operation."""
        return (self.mrope if self.rope is None else self.rope) or {}


class Presets(Mapping[str, Preset]):
    """The presets by name, in the order of the table. An unknown name raises a KeyError that lists similar names."""

    def __getitem__(self, name: str) -> Preset:
        if name not in table("presets"):
            import difflib

            near = difflib.get_close_matches(str(name), table("presets"), n=3) or ["posref list --presets"]
            msg = f"presets: name must be a preset's name; got {name!r}. See {', '.join(near)}."
            raise KeyError(msg)
        return _preset(name)

    def __iter__(self) -> Iterator[str]:
        return iter(table("presets"))

    def __len__(self) -> int:
        return len(table("presets"))

    def __repr__(self) -> str:
        """Name all presets."""
        return f"<presets: {', '.join(self)}>"

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names, for completion of keys in notebooks."""
        return list(self)

    def _repr_html_(self) -> str:
        """Return a table, for notebooks: the name of each preset, its function, and its arguments."""
        from html import escape

        rows = []
        for preset in self.values():
            arguments = ", ".join(f"{option}={value!r}" for option, value in preset.options.items() if value is not None)
            cells = (preset.name, f"posref.{preset.op}", arguments, preset.note)
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        head = "".join(f"<th>{word}</th>" for word in ("preset", "function", "arguments", "note"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


@cache
def _preset(name: str) -> Preset:
    """Return the preset of a row of the table."""
    row = table("presets")[name]
    arguments = _hashable(row["rope"] if "rope" in row else row["mrope"])
    lanes = {"lanes": arguments.pop("lanes")} if "lanes" in arguments else {}
    record = _hashable(arguments.pop("scaling", {}))
    scaling: Scaling | None = {kind.__name__: kind for kind in RECORDS}[record.pop("type")](**record) if record else None
    factors = {"table": table_factor(scaling, None), "input": 1.0, "softmax": 1.0}
    if row.get("softmax") and isinstance(scaling, YaRN):
        factors["softmax"] = softmax_factor(scaling.factor, scaling.mscale_all_dim)
    options = MappingProxyType({**arguments, "scaling": scaling, **lanes})
    return Preset(
        name=name,
        rope=options if "rope" in row else None,
        mrope=options if "mrope" in row else None,
        factors=MappingProxyType(factors),
        sizes=Sizes(**row["sizes"]) if "sizes" in row else None,
        verified=row["verified"],
        source="; ".join(MARKS[mark] for mark in row["verified"]),
        note=row.get("note", ""),
    )


def _hashable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of the table, with lists as tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


presets = Presets()
