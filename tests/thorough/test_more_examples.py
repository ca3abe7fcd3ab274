"""The invariants that a plain run tries on few examples, on more of them."""

import pytest
from every_encoding import invariants
from every_encoding.encoding import Encoding
from sampling import share

from posref.spec import REGISTRY


@pytest.mark.parametrize("op", share([op for op, record in REGISTRY.items() if record.invariants]))
def test_invariants_hold(op: str) -> None:
    encoding = Encoding(op)
    encoding.run(invariants.invariants_hold.__name__)
    encoding.finish()
