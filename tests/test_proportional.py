"""How many pairs rotate under Proportional is one integer, for the definition, its witness and Python."""

import numpy as np
import pytest

from posref import rope_frequencies
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import disagreement
from posref.scaling import Proportional


@pytest.mark.parametrize(
    ("dim", "rotated"), [(20, 0.3), (40, 0.3), (60, 0.7), (20, 0.7), (100, 0.58), (100, 0.29), (8, 1), (8, 0)]
)
def test_witnesses_and_arrays_count_the_same_pairs(dim: int, rotated: float) -> None:
    params = {"dim": dim, "base": 10000.0, "scaling": Proportional(rotated)}
    found = golden("rope_frequencies", {}, params)
    assert disagreement("rope_frequencies", {}, params, found, {}) is None
    inv_freq, _ = rope_frequencies(dim, base=10000.0, scaling=Proportional(rotated))
    assert np.count_nonzero(found["inv_freq"]) == np.count_nonzero(inv_freq) == int(rotated * dim // 2)
