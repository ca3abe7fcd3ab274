"""A plain implementation, written as a library writes it, stays inside the bounds."""

from pathlib import Path
from typing import Any

from sample import stored
from sources import assert_plain

from posref.conformance import check
from posref.conformance.model import BAD, LoadedCase
from posref.conformance.targets.python import load_python

from .encoding import Encoding, part

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "plain"
FOLDERS = ("conformance/witness", "conformance/evidence", "tests/plain")
MARK = "TO DO"
ENOUGH = 3  # value cases with elements that must pass


def plain_file(op: str) -> Path:
    """Return the file of an operation's plain implementation; fail where there is none."""
    file = FOLDER / f"{op}.py"
    assert file.is_file(), (
        f"tests/plain/{op}.py is missing: write the operation as a library does, in NumPy or that library alone, "
        "cite file and lines in its docstring; see CONTRIBUTING.md"
    )
    return file


def value_cases(op: str) -> list[LoadedCase]:
    """Return the cases of values of an operation that have elements."""
    return [
        case
        for case in stored(op)
        if case.kind not in ("reject", "vjp") and any(x.size for call in case.calls for x in call.expected.values())
    ]


def left_to_do(op: str, root: Path = ROOT) -> list[str]:
    """Return the lines that `posref.conformance.new` wrote, and in which is still to be said what to write."""
    files = [root / "CHANGELOG.md", *(root / folder / f"{op}.py" for folder in FOLDERS)]
    definitions = sorted((root / "posref").glob(f"*/{op}.py"))
    files += [*definitions, *(root / "posref/plots/pictures" / f"{file.parent.name}.py" for file in definitions)]
    found = []
    for file in (file for file in files if file.exists()):
        lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        found += [f"{file.relative_to(root).as_posix()}:{n}: {line.strip()}" for n, line in lines if MARK in line]
    return found


def assert_written(op: str, root: Path = ROOT) -> None:
    """Fail, with each line, while something of an operation is still to be written."""
    left = left_to_do(op, root)
    assert not left, f"{op}: {len(left)} lines are to be written:\n" + "\n".join(left)


@part(dear=True)
def plain_implementation_is_inside_the_bounds(encoding: Encoding) -> None:
    file = plain_file(encoding.op)
    assert_plain(file, encoding.op)
    assert_inside(file, encoding.op, dtype="float32", experiments=0)  # thorough tests ask its other dtypes, and calls besides


def assert_inside(file: Path, op: str, **options: Any) -> None:
    """Fail unless no case or fresh call is outside the bounds, and enough is asked: values, and inputs that need float32."""
    where = f"tests/plain/{file.name}"
    report = check(load_python(str(file)).implementation, op=op, **({"seed": 1} | options))
    cases = [case for operation in report.operations for case in operation.cases]
    failing = [f"{c.id}: {c.message}" for c in cases if c.kind != "reject" and c.verdict in BAD and c.verdict != "selective"]
    assert not failing, f"{where} is outside the bounds in {len(failing)} cases: {'; '.join(failing[:3])}"
    said = [operation.scope.narrow for operation in report.operations if operation.scope is not None]
    wrong = [text for text in said if text.startswith("it is wrong")]
    assert not wrong, f"{where}: {wrong[0]}"
    passed = {case.id for case in cases if case.verdict == "pass" and case.dtype == "float32"}
    full = value_cases(op)
    found = sum(case.id in passed for case in full)
    assert found >= ENOUGH, f"{where} passes {found} cases of values in float32; it must pass {ENOUGH}"
    exact = [case.id for case in full if "float32" in case.dtypes and "bfloat16" not in case.dtypes]
    assert not exact or passed & set(exact), f"{where} answers none of the cases that need float32: {', '.join(exact[:3])}"
