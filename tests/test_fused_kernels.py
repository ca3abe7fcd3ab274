"""Fused kernels: right ones pass, and planted defects are found, and named where the registry has them."""

from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from planting import defects
from quality import report_on, row, totals
from sampling import everything, few

import posref

KERNELS = {defect.__name__: defect for defect in defects("defects.kernels")}
RIGHT = [defect for name, defect in KERNELS.items() if name.startswith("right")]
WRONG = [defect for defect in KERNELS.values() if defect not in RIGHT]


@few(1, "kernel", RIGHT, ids=lambda kernel: kernel.__name__)
def test_a_kernel_without_a_defect_conforms(kernel) -> None:
    report = report_on(kernel)
    assert not report.failures, [(case.id, case.message) for case in report.failures][:5]


def test_there_are_defects_of_many_kinds() -> None:
    assert len(WRONG) >= 45
    assert len(RIGHT) == 2


@pytest.mark.thorough(dear=True)
@few(2, "defect", WRONG, ids=lambda defect: defect.__name__)
def test_a_defect_is_found_and_never_called_another(defect) -> None:
    found = row(defect)
    assert found.found
    assert found.verdict != "wrong", f"{found.defect} is not {found.called}"


@pytest.mark.thorough
@everything
@pytest.mark.thorough
def test_nine_tenths_of_the_defects_that_the_registry_knows_are_named() -> None:
    known = totals(row(defect) for defect in WRONG if defect.NAMES)
    assert known["named"] >= 0.9 * known["defects"], known


@everything
@pytest.mark.thorough
def test_four_fifths_of_all_defects_are_named_or_have_their_place() -> None:
    found = totals(row(defect) for defect in WRONG)
    assert found["found"] == found["defects"]
    assert found["named"] + found["told"] >= 0.8 * found["defects"], found


def _tail_heads_kept(kernel: Any) -> Any:
    """The last query head is neither normalized nor rotated."""

    def wrong(
        qkv: Any, q_weight: Any, k_weight: Any, positions: Any, table: Any, k_cache: Any, *rest: Any, **options: Any
    ) -> None:
        width, kv_heads = k_cache.shape[-1], k_cache.shape[-2]
        last = qkv.shape[1] // width - 2 * kv_heads - 1
        part = slice(last * width, (last + 1) * width)
        kept = qkv[:, part].clone()
        kernel(qkv, q_weight, k_weight, positions, table, k_cache, *rest, **options)
        qkv[:, part] = kept

    return wrong


def _last_key_not_written(kernel: Any) -> Any:
    def wrong(*arrays: Any, **options: Any) -> None:
        kept = arrays[5][:, :, -1].clone()
        kernel(*arrays, **options)
        arrays[5][:, :, -1] = kept

    return wrong


HARNESS = {
    "the last query head stays as it is": _tail_heads_kept,
    "the last key head is not written": _last_key_not_written,
    "keys have the weight of queries": lambda kernel: lambda qkv, w, _, *rest, **options: kernel(qkv, w, w, *rest, **options),
    "queries have the weight of keys": lambda kernel: lambda qkv, _, w, *rest, **options: kernel(qkv, w, w, *rest, **options),
    "positions are the indices of tokens": lambda kernel: (
        lambda qkv, q, k, p, *rest, **options: kernel(qkv, q, k, p.sort().values, *rest, **options)
    ),
    "nothing": lambda kernel: kernel,
}


@pytest.mark.parametrize("defect", HARNESS)
def test_the_adapter_of_a_fused_kernel_asks_every_head(defect: str) -> None:
    torch = pytest.importorskip("torch")
    text = files("posref.conformance.adapters") / "like" / "cache.py.txt"
    made: dict[str, Any] = {}
    exec(text.read_text(encoding="utf-8").format(name="example", file="example.py"), made)
    made["library_kernel"] = HARNESS[defect](made["library_kernel"])
    rng = np.random.default_rng(5)
    x, weight, angles = rng.standard_normal((2, 6, 8)), rng.random(8) + 0.5, rng.random((6, 4)) * 6
    arrays = [torch.asarray(a, dtype=torch.float32) for a in (x, weight, np.cos(angles), np.sin(angles))]
    options = {"layout": "half", "eps": 1e-6, "weight_offset": 0, "precedence": "norm_first"}
    found, expected = made["norm_rope"](*arrays, **options), posref.norm_rope(*arrays, **options)
    assert torch.allclose(found, expected, rtol=0, atol=1e-5) == (defect == "nothing")  # values of at most 6
