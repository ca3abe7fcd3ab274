"""What a diagnosis names holds for everything that was judged: the whole of a large call."""

from typing import Any

import numpy as np
import pytest

import posref
from posref.testing import assert_conforms

OPTIONS = {"layout": "half", "base": 10_000.0}
LARGE = np.random.default_rng(0).standard_normal((2, 32, 257, 128)).astype(np.float32)
EQUALS = "Matches the reference if"


def said(y: Any, x: Any, positions: Any) -> str:
    """Return the diagnosis of a rotation."""
    with pytest.raises(AssertionError) as caught:
        assert_conforms("rope", y, x, positions, **OPTIONS)
    return str(caught.value).partition("diagnosis: ")[2]


def test_a_name_that_explains_some_heads_says_which() -> None:
    """The rows that are farthest off are all in these heads."""
    y = posref.rope(LARGE, np.arange(257), **OPTIONS)
    y[:, 24:] = LARGE[:, 24:]
    text = said(y, LARGE, np.arange(257))
    assert text.startswith("Only ")
    assert "heads from 24 on" in text.partition("There ")[0]
    assert f"There your output {EQUALS.lower()} nothing is rotated" in text


def test_a_name_that_explains_some_tokens_says_which() -> None:
    late = np.arange(257) + (np.arange(257) > 40)
    text = said(posref.rope(LARGE, late, **OPTIONS), LARGE, np.arange(257))
    assert text.startswith("Only tokens from 41 on")
    assert f"There your output {EQUALS.lower()} positions are one too large (positions-plus-1)." in text


def test_a_name_that_explains_the_whole_call_says_no_part() -> None:
    text = said(posref.rope(LARGE, np.arange(257) + 1, **OPTIONS), LARGE, np.arange(257))
    assert text.startswith(f"{EQUALS} positions are one too large (positions-plus-1).")


@pytest.mark.thorough
def test_a_number_that_explains_some_heads_says_which() -> None:
    y = posref.rope(LARGE, np.arange(257), **OPTIONS)
    y[:, 24:] = posref.rope(LARGE[:, 24:], np.arange(257), layout="half", base=5000.0)
    text = said(y, LARGE, np.arange(257))
    assert text.startswith("Only ")
    assert "heads from 24 on" in text.partition("There ")[0]
    assert f"There your output {EQUALS.lower()} base is 5000 (passed: 10000)" in text


def test_a_name_that_needs_the_neighbours_of_a_row_is_found_in_a_call_of_some_thousand_values() -> None:
    positions = np.concatenate([np.arange(n) for n in (5, 35, 1, 89)])
    x = LARGE[:, 0, :130, :8]
    text = said(posref.rope(x, np.arange(130), **OPTIONS), x, positions)
    assert "(positions-arange)" in text


def test_positions_that_are_ignored_are_said_where_heads_come_after_tokens() -> None:
    """Counting along the heads is another mistake: positions (T, 1) vary along the tokens."""
    x = LARGE[0, :5, :2, :8]
    tokens, heads = np.arange(5)[:, None], np.arange(2)
    for used, words in ((tokens, "if 0, 1, 2, ... is used"), (heads, "if positions run along the head axis")):
        text = said(posref.rope(x, used, **OPTIONS), x, np.asarray([0, 1, 2, 0, 1])[:, None])
        assert f"the reference {words}" in text
        assert ("head axis" in text) == ("head axis" in words)
