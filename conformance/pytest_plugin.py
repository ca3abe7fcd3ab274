"""
The pytest plugin: one test for every case, for the implementation named on the command line.

    pytest --posref-target my_package.positions --posref-claim angle32

A test's id is the id of the case and the dtype: ``posref::rope/half/far[float32]``. pytest loads this file in every run, so it
imports only the standard library until an option is given.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .checking.expected_failures import Expected
    from .model import Answer, CaseResult, LoadedCase, Operation
    from .target.base import Target

OPTIONS = {
    "target": "check this implementation: an adapter, module, module:object or file.py",
    "command": "check a program that speaks the protocol, instead of a target",
    "claim": "the accuracy class that it must reach",
    "dtype": "check only this dtype",
    "backend": "the target's array library, if it does not name one",
    "op": "check only this operation",
    "tier": "smoke or core (the default)",
    "expected-failures": "a file that lists cases known to fail; a listed case that passes, or does not exist, is an error",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("posref", "golden vectors for positional encodings")
    for name, text in OPTIONS.items():
        group.addoption(f"--posref-{name}", help=text)


@pytest.hookimpl(tryfirst=True)  # before -k and -m choose among the tests
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the tests of the implementation, if one was named."""
    given = {name: config.getoption(f"posref_{name.replace('-', '_')}") for name in OPTIONS}
    if given["target"] is None and given["command"] is None:
        stray = [f"--posref-{name}" for name, value in given.items() if value is not None]
        if stray:
            msg = f"{', '.join(stray)}: give --posref-target or --posref-command as well."
            raise pytest.UsageError(msg)
        return
    from posref.backends import BackendMissing

    from .errors import PosrefError

    try:
        items += Suite.from_parent(session, name="posref", nodeid="posref", given=given).collect()
    except (PosrefError, BackendMissing) as error:
        raise pytest.UsageError(str(error)) from error


class Suite(pytest.Collector):
    """The cases of the vectors, for one implementation."""

    def __init__(self, *, given: dict[str, Any], **rest: Any) -> None:
        super().__init__(**rest)
        from .checking import asking, checker, expected_failures
        from .model import Operation
        from .suite.reading import INSTALLED
        from .target.loading import load

        options = {name: given[name] for name in ("claim", "dtype", "backend")}
        self.target: Target = load(given["target"], command=given["command"], **options)
        self.config.add_cleanup(self.target.close)
        self.config.pluginmanager.register(self, "posref-suite")
        self.operations: dict[tuple[str, str], tuple[Operation, list[Answer]]] = {}
        self.cases: list[tuple[LoadedCase, str]] = []
        self.missing: list[str] = []
        tier = given["tier"] or "core"
        names = checker.operations_of(INSTALLED, op=given["op"], case=None, tier=tier)
        self.missing = [op for op in names if not self.target.has(op)]
        everything = checker.choose(INSTALLED, ops=[op for op in names if op not in self.missing], tier=tier)
        for op in dict.fromkeys(case.op for case in everything):
            for dtype in asking.asked_dtypes(self.target, op):
                self.operations[op, dtype] = (Operation(op, dtype, self.target.claims[dtype], []), [])
                self.cases += [(c, dtype) for c in everything if c.op == op and asking.asked_in(c, dtype)]
        path = given["expected-failures"]
        self.expected: Expected = expected_failures.load(Path(path) if path else None, [f"{c.id}[{d}]" for c, d in self.cases])

    def collect(self) -> list[pytest.Item]:
        """Return a test for every case, and for every operation a test that enough of it is supported."""
        found: list[pytest.Item] = []
        for key in self.operations:
            found += [
                CaseItem.from_parent(self, name=f"{case.id}[{dtype}]", case=case, dtype=dtype)
                for case, dtype in self.cases
                if (case.op, dtype) == key
            ]
            found.append(OperationItem.from_parent(self, name=f"{key[0]}[{key[1]}]", key=key))
        return found

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print why operations fail, and what is missing."""
        from .checking import summary
        from .reports import terminal

        summary.finish(list(self.operations.values()))
        lines = [
            f"{operation.op} {operation.dtype}: {operation.diagnosis['text']}"
            for operation, _ in self.operations.values()
            if operation.diagnosis
        ]
        lines += [f"missing: {', '.join(self.missing)}"] if self.missing else []
        lines += [f"note: {remark}" for remark in self.target.remarks()]
        if lines:
            terminalreporter.section(f"posref: {terminal.printable(self.target.name)}")
        for line in lines:
            terminalreporter.write_line(terminal.printable(line))


class CaseItem(pytest.Item):
    """One case in one dtype."""

    def __init__(self, *, case: LoadedCase, dtype: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.case, self.dtype = case, dtype
        self.extra_keyword_matches |= {*case.flags, case.tier, case.kind}  # for -k

    def runtest(self) -> None:
        """Ask, and raise for a verdict that is not a pass."""
        from .checking import asking
        from .model import BAD, Answer

        suite = self.parent
        assert isinstance(suite, Suite)
        operation, answers = suite.operations[self.case.op, self.dtype]
        answer = Answer(self.case, self.dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an implementation's warnings must not become errors here
            result = asking.ask(suite.target, self.case, self.dtype, answer)
        operation.cases.append(result)
        answers.append(answer)
        reason = suite.expected.reason(self.name)
        if self.case.kind == "reject" and result.verdict in BAD:
            pytest.xfail(f"{result.message} (does not decide conformance)")
        if result.verdict == "unsupported":
            pytest.skip(result.message)
        if result.verdict in BAD and reason is not None:
            pytest.xfail(reason or "expected")
        if reason is not None:
            msg = f"passes, but {suite.expected.path} expects it to fail: remove it from that file"
            raise CaseFailure(msg)
        if result.verdict in BAD:
            raise CaseFailure(_told(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the verdict without a traceback into posref."""
        return str(excinfo.value) if isinstance(excinfo.value, CaseFailure) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the name of the test for pytest's report."""
        return Path("posref"), None, self.name


class OperationItem(CaseItem):
    """A test that enough of an operation is supported to judge it. It runs after the cases."""

    def __init__(self, *, key: tuple[str, str], **rest: Any) -> None:
        pytest.Item.__init__(self, **rest)
        self.key = key

    def runtest(self) -> None:
        """Raise if the smoke case did not pass, or most cases are unsupported; expected failures count as asked."""
        suite = self.parent
        assert isinstance(suite, Suite)
        operation, _ = suite.operations[self.key]
        if len(operation.cases) < sum((c.op, d) == self.key for c, d in suite.cases):
            pytest.skip("not all of its cases were chosen")
        if operation.too_little:
            raise CaseFailure(operation.too_little)


class CaseFailure(Exception):
    """A verdict that is not a pass."""


def _told(result: CaseResult) -> str:
    """Return a failing result in words."""
    from .reports.terminal import printable

    return f"{result.verdict} {result.id}: {printable(result.message)}\nrepeat: {printable(result.reproduce)}"


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return a line that names the vectors."""
    if config.getoption("posref_target") is None and config.getoption("posref_command") is None:
        return []
    from .suite.reading import INSTALLED, load_manifest

    return [f"posref: vectors {load_manifest(INSTALLED)['suite']}"]
