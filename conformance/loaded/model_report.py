"""The report of a loaded model: what was judged in which layers, the differences, and what was not judged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import posref

from ..evidence.every.for_model import ranges
from ..reports.html import page

NOTHING = "nothing of this model could be judged"


@dataclass(frozen=True)
class Difference:
    """Something that the model does otherwise than its file says: in a layer of a part, or in a buffer (`layer` is None)."""

    part: str
    layer: int | None
    what: str  # "rotation", "mask", "attention", "bias" or "buffer"
    text: str
    off: float | None = None  # the largest error of a rotation, in parts of the largest value


@dataclass(frozen=True)
class NotJudged:
    """Something that this call says nothing about, and why."""

    part: str
    layer: int | None
    what: str
    text: str


@dataclass
class ModelReport:
    """
    What one call says of a loaded model.

    `judged` lists what was compared, as (part, layer, what): a buffer has no layer. `file` says what the file has, by part and
    layer. `exit_code` is 0 if nothing differs, 1 if something does, and 2 if nothing could be judged.
    """

    model: str
    passed: str = "no forward pass"
    judged: list[tuple[str, int | None, str]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)
    file: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code of ``posref check --model``."""
        return 1 if self.differences else 0 if self.judged else 2

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        if self.differences:
            layers = {(difference.part, difference.layer) for difference in self.differences if difference.layer is not None}
            return f"NOT the model of its file: {len(_grouped(self.differences))} differences, in {len(layers)} layers"
        return "no difference from its file in what was judged" if self.judged else NOTHING

    @property
    def kinds(self) -> list[tuple[str, str, str, str]]:
        """Layers that are alike: their part, their numbers, what the file says of them, and what was judged."""
        kinds: dict[tuple[str, str, str], list[int]] = {}
        for (part, layer), words in self.file.items():
            judged = dict.fromkeys(what for name, number, what in self.judged if (name, number) == (part, layer))
            kinds.setdefault((part, words, ", ".join(judged) or "nothing"), []).append(layer)
        return [(part, ranges(tuple(layers)), words, judged) for (part, words, judged), layers in kinds.items()]

    @property
    def buffers(self) -> list[str]:
        """The buffers that were judged."""
        return [name for name, _, what in self.judged if what == "buffer"]

    @staticmethod
    def lines(entries: Iterable[Difference | NotJudged]) -> list[str]:
        """Return one line for all layers with the same text."""
        return _grouped(entries)

    def __str__(self) -> str:
        """Return the report as text."""
        lines = [self.model, self.passed]
        lines += [f"{part}, layers {layers}: {words}; judged: {judged}" for part, layers, words, judged in self.kinds]
        lines += [f"buffers: {', '.join(self.buffers)}"] if self.buffers else []
        lines += [f"DIFFERS: {text}" for text in _grouped(self.differences)]
        lines += [f"not judged: {text}" for text in _grouped(self.not_judged)]
        return "\n".join([*lines, self.verdict])

    def html_text(self) -> str:
        """Return the report as one HTML page that works offline; `PosrefError` if jinja2 is not installed."""
        return page("model.html.j2", report=self, version=posref.__version__)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "model": self.model,
            "pass": self.passed,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "file": [{"part": part, "layer": layer, "text": text} for (part, layer), text in self.file.items()],
            "judged": [{"part": part, "layer": layer, "what": what} for part, layer, what in self.judged],
            "differences": [asdict(item) for item in self.differences],
            "not_judged": [asdict(item) for item in self.not_judged],
        }

    def json_text(self) -> str:
        """Return the report as the text of a JSON file."""
        return json.dumps(self.to_json(), indent=1) + "\n"


def _grouped(entries: Iterable[Difference | NotJudged]) -> list[str]:
    """Return one line for all layers with the same text."""
    groups: dict[tuple[str, str, str], list[Difference | NotJudged]] = {}
    for entry in entries:
        groups.setdefault((entry.part, entry.what, entry.text), []).append(entry)
    lines = []
    for (part, what, text), same in groups.items():
        layers = sorted({entry.layer for entry in same if entry.layer is not None})
        place = f", layer{'s' if len(layers) > 1 else ''} {ranges(tuple(layers))}" if layers else ""
        off = max((entry.off for entry in same if isinstance(entry, Difference) and entry.off is not None), default=None)
        lines.append(f"{part}{place}: {what}: {text}" + ("" if off is None else f" (off by {off:.2g} of the largest value)"))
    return lines
