"""The reference on every core case on Dask, in float32: graphs are built for every call."""

import pytest
from sampling import share
from test_reference_everywhere import assert_conformant

from posref.spec import REGISTRY


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", share(REGISTRY, part=0.5))
def test_on_dask(op: str) -> None:
    assert_conformant(backend="dask", op=op, dtype="float32")
