"""The reference on every core case on JAX, which compiles every shape: in float32, and with float64."""

from contextlib import nullcontext

import pytest
from test_reference_everywhere import assert_conformant

from posref.spec import REGISTRY

WITH_FLOAT64 = list(REGISTRY)[::6]  # `test_backends` asks some cases of every operation so


@pytest.mark.parametrize(("op", "x64"), [*((op, False) for op in REGISTRY), *((op, True) for op in WITH_FLOAT64)])
def test_on_jax(op: str, x64: bool) -> None:
    """Without float64 angles are int32 turns, of class angle64 all the same."""
    import jax

    with jax.enable_x64(True) if x64 else nullcontext():
        options = {"dtype": "float64", "claim": "float64"} if x64 else {"dtype": "float32"}
        assert_conformant(backend="jax", op=op, **options)
