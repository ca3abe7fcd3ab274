"""Modules of transformers against ``check --for`` and the files of released models: right ones conform, wrong ones do not."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rotary_modules import built
from sampling import SEED, share
from snapshot import load
from test_layouts_transformers import function, takes_more, turned
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from posref import from_config, rope_from_config
from posref.conformance import check
from posref.conformance.evidence.every import for_model
from posref.conformance.reports.document import verdict_text

WITHOUT_MODULE = ("gptj", "codegen")  # they keep a table in their attention
ROWS = load("presets")["Files of presets"]


def refused(config: dict[str, Any]) -> str:
    """Return why from_config refuses a file: the snapshot has the text's keys alone of some."""
    try:
        from_config(config)
    except ValueError as error:
        return str(error)
    return ""


FILES = {
    json.dumps(row["config"]): (row["name"], row["config"])
    for row in ROWS
    if row["config"]["model_type"] in {*CONFIG_MAPPING_NAMES} - {*WITHOUT_MODULE}
    and "vision_config" not in refused(row["config"])
}
RELEASED = list(FILES.values())
Change = Callable[..., Any]


class Narrow:
    """
    What the attention of a model does, with what its rotary module computes: it takes no option.

    Where layers of several types are asked, the base and the scaling say of which type a call is. `change` is a function of the
    module's frequencies, and `positions` one of the positions that it gets.
    """

    __name__ = "narrow"
    backend, dtypes = "torch", ("float32",)

    def __init__(self, config: dict[str, Any], **changes: Change) -> None:
        self.module, self.code = built(config)
        self.model = self.module.config.model_type
        self.changes = changes
        buffers = [name for name, _ in self.module.named_buffers() if name.endswith("inv_freq") and "original" not in name]
        self.types = [name.removesuffix("inv_freq").removesuffix("_") for name in buffers]
        self.options = {name: rope_from_config(config, layer_type=name) for name in self.types if name}
        if "change" in changes:
            for name in buffers:
                setattr(self.module, name, changes["change"](getattr(self.module, name)))

    def _type(self, base: float, scaling: Any) -> dict[str, str]:
        names = (name for name, own in self.options.items() if (own["base"], own["scaling"]) == (base, scaling))
        return {"layer_type": next(names)} if self.options else {}

    def _rotated(self, x: torch.Tensor, at: torch.Tensor, kind: Any, lanes: int) -> torch.Tensor:
        table = self.module(torch.zeros(1), at, **self._type(*kind))
        apply = function(self.model, self.code)
        if x.shape[-1] == lanes or takes_more(apply):
            return turned(self.model, apply, table, x)
        return torch.cat([turned(self.model, apply, table, x[..., :lanes].contiguous()), x[..., lanes:]], -1)

    def rope(self, x: Any, positions: Any, /, *, base: float, scaling: Any = None, **options: Any) -> Any:
        at = self.changes.get("positions", lambda at: at)(positions.reshape(-1, positions.shape[-1]))
        return self._rotated(x, at.expand(x.shape[0], -1), (base, scaling), options.get("rotary_dim") or x.shape[-1])

    def mrope(self, x: Any, positions: Any, /, *, sections: Any, **options: Any) -> Any:
        at = positions.reshape(len(sections), -1, positions.shape[-1])
        at = self.changes.get("positions", lambda at: at)(at.expand(-1, x.shape[0], -1))
        return self._rotated(x, at, (0, None), 2 * sum(sections))


def target(config: dict[str, Any], **changes: Change) -> Any:
    """Return a target with the operation of a model alone."""
    made = Narrow(config, **changes)
    op = "mrope" if any(kind.op == "mrope" for kind in for_model.of_config("", config, for_model.Choice()).kinds) else "rope"
    return SimpleNamespace(backend="torch", dtypes=("float32",), __name__="narrow", **{op: getattr(made, op)})


def with_frequencies(change: Change) -> Change:
    """Change the buffers of a module: None if it computes them anew in every call, as LongRoPE and dynamic scalings do."""
    return lambda config: None if (rope_type(config) in ("longrope", "dynamic")) else target(config, change=change)


def rope_type(config: dict[str, Any]) -> str:
    rope = config.get("rope_scaling") or {}
    return str(rope.get("rope_type", rope.get("type", "default")))


def with_positions(change: Change) -> Change:
    return lambda config: target(config, positions=change)


def without_scaling(config: dict[str, Any]) -> Any:
    if rope_type(config) in ("default", "mrope"):
        return None
    return target(
        {**config, "rope_scaling": {key: value for key, value in config["rope_scaling"].items() if "section" in key} or None}
    )


WRONG: dict[str, Change] = {
    "another base": with_frequencies(lambda x: x**1.1),
    "frequencies in bfloat16": with_frequencies(lambda x: x.bfloat16().float()),
    "the slowest pair is still": with_frequencies(lambda x: torch.cat([x[:-1], 0 * x[-1:]])),
    "the other direction": with_frequencies(torch.neg),
    "pairs in reverse": with_frequencies(lambda x: x.flip(0)),
    "positions in bfloat16": with_positions(lambda at: at.bfloat16().long()),
    "positions from 1": with_positions(lambda at: at + 1),
    "positions from 0 in every call": with_positions(lambda at: at - at.amin(-1, keepdim=True)),
    "the positions of the first row": with_positions(lambda at: at[..., :1, :].expand_as(at)),
    "a table of 1024 rows": with_positions(lambda at: at.clamp(max=1023)),
    "no scaling": without_scaling,
}


def file_of(tmp_path: Path, config: dict[str, Any]) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def verdict(one: Any, file: str) -> str:
    """Return the verdict on what rotates the text's heads: an indexer has a function of its own."""
    component = "text" if any(kind.component == "indexer" for kind in for_model.read(file).kinds) else None
    op = ["rope"] if hasattr(one, "rope") else ["mrope"]
    return verdict_text(check(one, model=file, op=op, component=component, seed=SEED).to_json())


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(("name", "config"), share(RELEASED, 0.5), ids=lambda value: value if isinstance(value, str) else "")
def test_a_module_of_transformers_conforms_for_its_own_file(name: str, config: dict[str, Any], tmp_path: Path) -> None:
    file = file_of(tmp_path, config)
    assert verdict(target(config), file) == f"CONFORMANT for {file}"


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(("name", "config"), share(RELEASED, 0.5), ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_module_does_not(name: str, config: dict[str, Any], tmp_path: Path) -> None:
    """One mistake by the seed of the run."""
    file = file_of(tmp_path, config)
    for words in random.Random(f"{name}/{SEED}").sample(sorted(WRONG), len(WRONG)):
        wrong = WRONG[words](config)
        if wrong is not None:
            assert verdict(wrong, file) == f"NOT CONFORMANT for {file}", words
            return
