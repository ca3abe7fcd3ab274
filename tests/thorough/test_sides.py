"""
Which keys a query sees, by passes of the models: an earlier token's output changes with the last token, or it does not.

A type is not judged if its model does not build small, or takes other things than tokens.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from loaded_models import limited, small_config
from sampling import share
from transformers import CONFIG_MAPPING, AutoModel

from posref import from_config
from posref.models.model_types import model_table

TEXTS = ("text", "encoder", "decoder")
JUDGED = {name: row for name, row in model_table().items() if "sides" in row and name in CONFIG_MAPPING}
NAMES = [name for name, row in JUDGED.items() if any(own["component"].partition(" ")[0] in TEXTS for own in row["rows"])]
NOT_CAUSAL_AT_ONCE = ("fsmt",)  # its decoder masks later tokens only without a cache, though a cache gives one at a time


def seen(forward: Callable[[torch.Tensor], torch.Tensor], first: int) -> str:
    """Return whether outputs before the last token change with it."""
    tokens = torch.arange(first, first + 24)[None]
    other = tokens.clone()
    other[0, -1] = 5
    with torch.no_grad():
        change = (forward(tokens) - forward(other)).abs().amax(-1)[0]
    if change.shape != (24,) or not change[-1]:
        pytest.skip("its outputs are not one for each token")
    return "both" if float(change[:-1].max()) > 1e-5 * float(change[-1]) else "causal"


def passes(name: str, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a small file of a type, and what its model does."""
    try:
        with limited(30):
            config = small_config(name, **changes)
            with torch.device("meta"):
                if sum(x.numel() for x in AutoModel.from_config(config).parameters()) > 4e7:
                    pytest.skip("its default is large")
            config = small_config(name, **changes)
            torch.manual_seed(0)
            model = AutoModel.from_config(config, attn_implementation="eager").eval()
            for weight in model.parameters():
                if weight.dim() > 1:
                    torch.nn.init.normal_(weight, std=0.15)
            fixed = torch.arange(40, 64)[None]
            file = {**config.to_dict(), **changes, "model_type": name}
            if getattr(config, "is_encoder_decoder", False):
                return file, {
                    "encoder": seen(lambda x: model(input_ids=x, decoder_input_ids=fixed).encoder_last_hidden_state, 10),
                    "decoder": seen(lambda x: model(input_ids=fixed, decoder_input_ids=x).last_hidden_state, 10),
                }
            return file, {"text": seen(lambda x: model(input_ids=x)[0], 10)}
    except (Exception, TimeoutError) as error:
        pytest.skip(f"{type(error).__name__}: {error}"[:100])


def said(file: dict[str, Any]) -> dict[str, set[str]]:
    """Return the words of from_config, by part."""
    found: dict[str, set[str]] = {}
    try:
        answer = from_config(file)
    except ValueError as error:
        pytest.skip(f"its small file is refused: {error}"[:100])
    for name, entries in answer.items():
        for entry in entries:
            if entry is not None and "sides" in entry.conventions:
                found.setdefault(name.partition(" ")[0], set()).add(entry.conventions["sides"])
    return found


@pytest.mark.parametrize("name", share(NAMES))
def test_sides_are_those_of_a_pass(name: str) -> None:
    file, runs = passes(name, {})
    words = said(file)
    for part, word in runs.items():
        if part in words and (name not in NOT_CAUSAL_AT_ONCE or part != "decoder"):
            assert words[part] == {word}, (part, word)


@pytest.mark.parametrize("name", share([n for n in NAMES if isinstance(JUDGED[n]["sides"], list)]))
def test_the_switch_of_a_file_changes_sides(name: str) -> None:
    _, key, value = JUDGED[name]["sides"]
    file, runs = passes(name, {key: value})
    assert said(file)["text"] == {runs["text"]}
