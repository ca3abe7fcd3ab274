"""A fused kernel in Triton, of the signature that servers have, is judged in Triton's interpreter: right, and with defects."""

from pathlib import Path

import pytest
from sources import assert_stands_alone

from posref.conformance import check

pytest.importorskip("triton", reason="Triton has wheels for Linux alone")
FILE = Path(__file__).parents[1] / "correct" / "interpreted" / "fused.py"
DEFECTS = {  # the kernel's line, the wrong one, and cases that show it
    "eps is outside the root": (
        "1.0 / tl.sqrt(tl.sum(x * x, axis=0) / width + tl.load(eps))",
        "1.0 / (tl.sqrt(tl.sum(x * x, axis=0) / width) + tl.load(eps))",
        "norm_rope/norm-first/large-eps",
    ),
    "the mean is over the rotated channels": ("axis=0) / width", "axis=0) / (2 * pairs)", "norm_rope/norm-first/half-partial"),
    "the sine has the other sign": ("a * cos - b * sin", "a * cos + b * sin", "norm_rope/norm-first/half-partial"),
    "the last query head stays": (
        "    if head < heads + kv_heads:",
        "    if (head < heads + kv_heads) & (head != heads - 1):",
        "norm_rope/norm-first/half-partial",
    ),
    "a slot is one too far": ("slot % size) * kv_heads", "(slot + 1) % size) * kv_heads", "write_cache/pages/small"),
    "the first slot is skipped": ("slot >= 0", "slot > 0", "write_cache/skip/first-slot"),
}


def test_the_kernel_imports_nothing_of_posref() -> None:
    assert_stands_alone(FILE)


@pytest.mark.timeout(1800)
def test_the_kernel_conforms_in_its_scope() -> None:
    report = check(str(FILE), timeout=600)
    assert report.conformant, [(case.id, case.message) for case in report.failures][:5]
    passed = {operation.op: operation.counts["pass"] for operation in report.operations}
    assert passed["norm_rope"] >= 40
    assert passed["write_cache"] >= 30


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_in_it_is_found(defect: str, tmp_path: Path) -> None:
    right, wrong, case = DEFECTS[defect]
    text = FILE.read_text(encoding="utf-8")
    assert right in text
    changed = tmp_path / "kernel.py"
    changed.write_text(text.replace(right, wrong), encoding="utf-8")
    report = check(str(changed), case=case, timeout=600)
    assert {case.verdict for case in report.failures} == {"fail"}, [(c.id, c.verdict, c.message) for c in report.failures][:5]
