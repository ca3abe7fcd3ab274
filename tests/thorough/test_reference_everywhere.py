"""The reference on every core case, on MLX and array-api-strict, and in a process of its own."""

from typing import Any

import pytest
from sampling import share

import posref
from posref.conformance import check
from posref.spec import REGISTRY

RUNS: dict[str, dict[str, Any]] = {
    "array_api_strict": {"backend": "array_api_strict"},
    "mlx": {"backend": "mlx", "dtype": "float32"},
    "mlx in half precision": {"backend": "mlx", "dtype": "bfloat16", "op": ("rope", "attention", "alibi", "t5_bias")},
    "strict without float64": {"backend": "array_api_strict", "dtype": "float32", "claim": "angle64"},
}
ASKED = [(name, op) for name, options in RUNS.items() for op in options.get("op", REGISTRY)]


def assert_conformant(**options: Any) -> None:
    report = check(posref, **options)  # the object: a setting of its library, made here, holds for it
    assert report.conformant, [(c.id, c.dtype, c.message) for c in report.failures][:5]
    assert report.validation[0] == report.validation[1]
    assert report.operations
    for operation in report.operations:
        assert operation.achieved in ("float64", "angle64")


@pytest.mark.parametrize(("name", "op"), share(ASKED, part=0.5))
def test_on_every_case(name: str, op: str) -> None:
    import array_api_strict

    device = {"device": array_api_strict.Device("no_float64")} if "without" in name else {}
    assert_conformant(**RUNS[name] | device | {"op": op})


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(("backend", "dtype"), [("numpy", "float64"), ("torch", "bfloat16")])
def test_in_a_process_of_its_own(backend: str, dtype: str) -> None:
    report = check("posref", backend=backend, dtype=dtype)
    assert report.conformant
    assert not report.missing
    assert report.target["notes"] == []
