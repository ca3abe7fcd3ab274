"""
The reference on JAX, call by call, which compiles every operation for every shape: a quarter of the encodings on every core
case. `test_jax_jit` compiles every case of all of them as a whole; `test_backends` asks their smoke cases call by call.
"""

from contextlib import nullcontext

import pytest
from sampling import share
from test_reference_everywhere import assert_conformant

from posref.spec import REGISTRY

pytestmark = pytest.mark.usefixtures("compiled_code_is_forgotten")
WITHOUT_FLOAT64, WITH_FLOAT64 = list(REGISTRY)[1::4], list(REGISTRY)[::8]


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(
    ("op", "x64"), share([*((op, False) for op in WITHOUT_FLOAT64), *((op, True) for op in WITH_FLOAT64)], part=0.5)
)
def test_on_jax(op: str, x64: bool) -> None:
    """Without float64 angles are int32 turns, of class angle64 all the same."""
    import jax

    with jax.enable_x64(True) if x64 else nullcontext():
        options = {"dtype": "float64", "claim": "float64"} if x64 else {"dtype": "float32"}
        assert_conformant(backend="jax", op=op, **options)
