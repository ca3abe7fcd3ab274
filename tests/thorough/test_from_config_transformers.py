"""
Default configurations of transformers as from_config reads them, against the models' own code: see tests/config_outcomes.py.

A run asks a tenth of the model types; `--everything` asks all, and counts. `python tests/config_outcomes.py` prints a line for
each directory.
"""

from collections import Counter
from typing import Any

import config_outcomes
import pytest
import resample_comparisons
from config_outcomes import EXCEPTIONS, KNOWN, NOT_RUN, UNBUILT, directories, missed, outcome
from sampling import everything, share
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

import posref


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("model_type", share([name for name in CONFIG_MAPPING_NAMES if name not in UNBUILT], part=0.5))
def test_a_model_type_agrees_with_its_own_code(model_type: str) -> None:
    found = outcome(model_type)
    assert found.answered
    assert not found.wrong or found.directory in EXCEPTIONS, found.wrong


@everything
def test_at_least_430_of_437_directories_with_absolute_or_rotary_encodings_agree_by_value() -> None:
    """That a table is there does not count here. In more than nine of ten every operation agrees, and not one of several."""
    outcomes = {name: [outcome(model_type) for model_type in types] for name, types in directories().items()}
    wrong = {name for name, of_types in outcomes.items() if any(one.wrong for one in of_types)}
    nothing = {name for name, of_types in outcomes.items() if not any(one.compared for one in of_types)}
    asked = {name: {op for one in of_types for op in one.operations & KNOWN} for name, of_types in outcomes.items()}
    named = {name for name, operations in asked.items() if operations}
    agreeing = {name for name in named - wrong if asked[name] - set(missed(outcomes[name]))}
    whole = {name for name in agreeing if not missed(outcomes[name])}
    counts = sum((one.compared for of_types in outcomes.values() for one in of_types), Counter[str]())
    print(f"\n{len(outcomes)} directories, {len(named)} with absolute or rotary encodings, {len(agreeing)} agree; {counts}")
    print("wrong or not compared:", {name: missed(outcomes[name]) for name in sorted(named - whole)})
    assert wrong <= set(EXCEPTIONS)
    assert nothing == set(NOT_RUN)
    assert len(agreeing) >= len(named) * 430 / 437
    assert len(whole) > 0.9 * len(named)


WRONG = [
    ("llama", "text", {"layout": "interleaved"}),
    ("llama", "text", {"base": 500.0}),
    ("deepseek_v32", "indexer", {"layout": "interleaved_to_half"}),
    ("qwen2_vl", "text", {"sections": (24, 24, 16)}),
    ("qwen2_vl", "vision", {"layout": "interleaved"}),
    ("kimi_k25_vision", "vision attention", {"arrangement": "chunked"}),
    ("opt", "text", {"offset": 0}),
    ("t5", "encoder", {"bidirectional": False}),
    ("bloom", "text", {"heads": 4}),
    ("wav2vec2", "audio", {"groups": 8}),
    ("deformable_detr", "vision", {"centered": False}),
    ("rt_detr", "vision", {"layout": "interleaved"}),
    ("whisper", "encoder", {"endpoint": False}),
    ("vit", "vision table", {"align_corners": True}),
    ("swin", "vision attention", None),
]


@pytest.mark.parametrize(("model", "component", "change"), WRONG, ids=str)
def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch, model: str, component: str, change: dict[str, Any]) -> None:
    """One option of one component is another, or the component is left out."""

    def altered(config: Any) -> dict[str, list[Any]]:
        found = posref.from_config(config)
        if change is None:
            return {name: entries for name, entries in found.items() if name != component}
        return found | {component: [entry._replace(options={**entry.options, **change}) for entry in found[component]]}

    assert not outcome(model).wrong
    monkeypatch.setattr(config_outcomes, "from_config", altered)
    assert outcome(model).wrong


def test_a_table_that_is_added_in_another_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.vit.modeling_vit import ViTEmbeddings

    forward = ViTEmbeddings.forward

    def flipped(self: Any, *given: Any) -> Any:
        table = self.position_embeddings.data
        self.position_embeddings.data = table.flip(1)
        try:
            return forward(self, *given)
        finally:
            self.position_embeddings.data = table

    monkeypatch.setattr(ViTEmbeddings, "forward", flipped)
    monkeypatch.setattr(resample_comparisons, "_KNOWN", {})  # what was found of the right one
    assert any("is not added row by row" in text for text in outcome("vit").wrong)
