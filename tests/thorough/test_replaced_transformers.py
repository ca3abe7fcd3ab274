"""
Small models of transformers whose position code is replaced by posref and what from_config says: outputs stay.

tests/replaced_models.txt has what becomes of every type: what is replaced, what the file says and is left as it is, and which
types do not build small. Families with other code for positions are in test_bias_models.py and test_relative_models.py.
"""

import pytest
from replaced_models import FILE, NOT_BUILT, TOLERANCE, replaced, silent
from sampling import share
from transformers import CONFIG_MAPPING

LINES = dict(line.split(": ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
BUILT = [name for name, line in LINES.items() if line != NOT_BUILT]


ODD = ["moonshine_streaming_encoder"]  # it has no mask but that of its windows


def test_every_type_is_judged_or_does_not_build_small() -> None:
    assert set(LINES) == set(CONFIG_MAPPING)
    equal = [line for line in LINES.values() if line.startswith("equal")]
    assert len(equal) > 200
    assert not any("without effect" in line for line in equal)  # a wrong component changes outputs
    assert [name for name, line in LINES.items() if line.startswith("differs")] == ODD


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("name", share(BUILT))
def test_outputs_stay_with_posref_in_place_of_the_code_for_positions(name: str) -> None:
    outcome = replaced(name)
    assert outcome.text == LINES[name]
    assert outcome.off < TOLERANCE


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(
    "name", share([name for name in BUILT if LINES[name].startswith("equal") and "rotation" in LINES[name]], 0.5)
)
def test_a_key_that_the_code_reads_is_read_or_refused(name: str) -> None:
    """Each key that code of attention, masks and positions reads gets other values, in a model of its own."""
    assert [(key, said) for key, said in silent(name) if "differs, " in said] == []
