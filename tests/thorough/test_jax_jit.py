"""The reference under `jax.jit`, in float32: every core case that is one call, compiled as a whole."""

import jax
import pytest
from sampling import share
from test_compilers import JAX, OF_ARRAYS, assert_within, called

from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.spec import REGISTRY

pytestmark = pytest.mark.usefixtures("compiled_code_is_forgotten")


LONG = "path_logits"  # its chain is unrolled: XLA takes minutes for each shape


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", share([op for op in OF_ARRAYS if op != LONG], part=0.5))
def test_every_call_may_be_compiled(op: str) -> None:
    weights = REGISTRY[op].arrays.get("weight")
    traced = weights is not None and weights.kind == "wide"  # frequencies whose products are in float32 there
    claim, asked = "angle32" if traced else "angle64", 0
    for group in load_groups(INSTALLED, ops=(op,)):
        for case in group.cases:
            if case.kind == "value" and "float32" in case.dtypes:
                function, arrays = called(JAX, case)
                assert_within(JAX, case, jax.jit(function)(arrays), claim)
                asked += 1
    assert asked
