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
    from .checks.expected_failures import Expected
    from .model import Answer, CaseResult, LoadedCase, Operation, Scope
    from .targets.base import Target

OPTIONS = {
    "target": "check this implementation: an adapter, module, module:object or file.py",
    "command": "check a program that speaks the protocol, instead of a target",
    "claim": "the accuracy class that it must reach",
    "dtype": "check only this dtype",
    "backend": "the target's array library, if it does not name one",
    "op": "check only this operation",
    "tier": "smoke, core (the default) or kernel",
    "seed": "repeat the fresh calls of a run, which names their seed; by default they are drawn anew",
    "expected-failures": "a file that lists cases known to fail; a listed case that passes, or does not exist, is an error",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("posref", "golden vectors for positional encodings")
    group.addoption("--posref", action="store_true", help="take what is not given below from [tool.posref] in pyproject.toml")
    for name, text in OPTIONS.items():
        group.addoption(f"--posref-{name}", help=text)


@pytest.hookimpl(tryfirst=True)  # before -k and -m choose among the tests
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the tests of the implementation, if one was named."""
    settings = {name: config.getoption(f"posref_{name.replace('-', '_')}") for name in OPTIONS}
    if config.getoption("posref"):
        settings = _of_project(config) | {name: value for name, value in settings.items() if value is not None}
    if settings["target"] is None and settings["command"] is None:
        stray = [f"--posref-{name}" for name, value in settings.items() if value is not None]
        if stray:
            msg = f"{', '.join(stray)}: give --posref-target or --posref-command as well."
            raise pytest.UsageError(msg)
        if config.getoption("posref"):
            msg = "--posref: [tool.posref] in pyproject.toml must have a target or a command."
            raise pytest.UsageError(msg)
        return
    from posref.backends import BackendMissing

    from .errors import PosrefError

    try:
        items += Suite.from_parent(session, name="posref", nodeid="posref", given=settings).collect()
    except (PosrefError, BackendMissing) as error:
        raise pytest.UsageError(str(error)) from error


def _of_project(config: pytest.Config) -> dict[str, Any]:
    """Return the options in the project's pyproject.toml."""
    from .checks.project_settings import settings
    from .errors import PosrefError

    try:
        return dict.fromkeys(OPTIONS) | {name: value for name, value in settings(config.rootpath).items() if name in OPTIONS}
    except PosrefError as error:
        raise pytest.UsageError(str(error)) from error


def _seed(given: Any) -> int:
    """Return the seed of fresh calls, drawn where none is given."""
    from secrets import randbits

    try:
        return randbits(32) if given is None else abs(int(given))
    except ValueError as error:
        msg = f"--posref-seed must be an integer; got {given!r}."
        raise pytest.UsageError(msg) from error


class Suite(pytest.Collector):
    """The cases of the vectors, for one implementation."""

    def __init__(self, *, given: dict[str, Any], **rest: Any) -> None:
        super().__init__(**rest)
        from .calls import class_of_claim
        from .checks import case_run, expected_failures, scope_result
        from .checks.choice import Choice
        from .model import Operation
        from .targets.loader import load

        options = {name: given[name] for name in ("claim", "dtype", "backend")}
        self.target: Target = load(given["target"], command=given["command"], **options)
        self.config.add_cleanup(self.target.close)
        self.stated = scope_result.stated_scope(self.target)
        self.chosen: dict[str, list[tuple[LoadedCase, str]]] | None = None  # by operation, once pytest has chosen
        self.results: dict[tuple[str, str], CaseResult] = {}
        self.operations: dict[tuple[str, str], tuple[Operation, list[Answer]]] = {}
        self.cases: dict[tuple[str, str], list[LoadedCase]] = {}
        self.tier = given["tier"] or "core"
        self.seed = _seed(given["seed"])
        self.fresh = 0  # calls that were drawn
        choice = Choice(tier=self.tier, op=given["op"])
        names = choice.operations()
        self.by_name = bool(given["op"])
        self.missing = [op for op in names if not self.target.has(op)]
        everything = choice.cases([op for op in names if op not in self.missing])
        for op in dict.fromkeys(case.op for case in everything):
            for dtype in case_run.asked_dtypes(self.target, op):
                cases_of_op = [case for case in everything if case.op == op]
                self.operations[op, dtype] = (Operation(op, dtype, class_of_claim(op, self.target.claims[dtype]), []), [])
                self.cases[op, dtype] = list(case_run.cases_in(self.target, cases_of_op, dtype))
        path = given["expected-failures"]
        ids = [f"{case.id}[{dtype}]" for (_, dtype), cases in self.cases.items() for case in cases]
        self.expected: Expected = expected_failures.load(Path(path) if path else None, ids)
        self.config.pluginmanager.register(self, "posref-suite")  # nothing is summarised if the above was refused

    def collect(self) -> list[pytest.Item]:
        """Return a test for every case, and for every operation a test of its scope."""
        items: list[pytest.Item] = []
        for (op, dtype), cases in self.cases.items():
            items += [CaseItem.from_parent(self, name=f"{case.id}[{dtype}]", case=case, dtype=dtype) for case in cases]
            items.append(OperationItem.from_parent(self, name=f"{op}[{dtype}]", key=(op, dtype)))
        return items + [MissingItem.from_parent(self, name=op) for op in self.missing if self.by_name]

    def result(self, case: LoadedCase, dtype: str) -> CaseResult:
        """Return the verdict of a case; all chosen cases of its operation run at once, since they decide its scope."""
        if (case.id, dtype) not in self.results:
            self._ask(case.op)
        return self.results[case.id, dtype]

    def whole(self, op: str) -> bool:
        """Return whether all cases of an operation were chosen."""
        return len(self._chosen(op)) == sum(len(cases) for (name, _), cases in self.cases.items() if name == op)

    def _chosen(self, op: str) -> list[tuple[LoadedCase, str]]:
        if self.chosen is None:
            self.chosen = {}
            for item in self.session.items:
                if isinstance(item, CaseItem) and item.parent is self and not isinstance(item, OperationItem):
                    self.chosen.setdefault(item.case.op, []).append((item.case, item.dtype))
        return self.chosen.get(op, [])

    def _ask(self, op: str) -> None:
        """Ask the chosen cases of an operation in all dtypes, and add its scope."""
        from .checks import case_run, scope_result
        from .checks.fresh_calls import ask_fresh_calls
        from .checks.learned_scope import Trials
        from .model import NOT_JUDGED, Answer

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an implementation's warnings must not become errors here
            for case, dtype in self._chosen(op):
                operation, answers = self.operations[op, dtype]
                answer = Answer(case, dtype)
                result = self.results[case.id, dtype] = case_run.ask(self.target, case, dtype, answer)
                if result.verdict != NOT_JUDGED:
                    operation.cases.append(result)
                    answers.append(answer)
            of_operation, trials = [pair for (name, _), pair in self.operations.items() if name == op], Trials(self.target)
            scope_result.add_scopes(
                of_operation, self.target, self.stated, trials, whole=self.whole(op) and self.tier != "smoke"
            )
            if self.whole(op):
                self.fresh += ask_fresh_calls(of_operation, self.stated, self.seed, trials)
            trials.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print why operations fail, and what is missing."""
        from .checks.conclusion import summarise_and_diagnose
        from .errors import printable
        from .reports import terminal

        summarise_and_diagnose(list(self.operations.values()))
        lines = [
            f"{operation.op} {operation.dtype}: {operation.diagnosis['text']}"
            for operation, _ in self.operations.values()
            if operation.diagnosis
        ]
        scopes = {op.op: op.scope for op, _ in self.operations.values() if op.scope is not None}
        lines += [f"{op}: {scope.line}" for op, scope in scopes.items() if scope.answered < scope.asked]
        lines += [terminal.missing(self.missing)] if self.missing else []
        lines += [f"note: {remark}" for remark in self.target.remarks()]
        if self.fresh:
            lines.append(f"note: {self.fresh} fresh calls as well (repeat them with --posref-seed {self.seed})")
        if lines:
            terminalreporter.section(f"posref: {printable(self.target.name)}")
        for line in lines:
            terminalreporter.write_line(printable(line))


class CaseItem(pytest.Item):
    """One case in one dtype."""

    parent: Suite

    def __init__(self, *, case: LoadedCase, dtype: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.case, self.dtype = case, dtype
        self.extra_keyword_matches |= {*case.flags, case.tier, case.kind}  # for -k

    def runtest(self) -> None:
        """Ask, and raise for a verdict that is not a pass."""
        from .errors import printable
        from .model import BAD, NOT_JUDGED, decides

        result = self.parent.result(self.case, self.dtype)
        reason = self.parent.expected.reason(self.name)
        if result.verdict in BAD and not decides(self.case.kind, result.verdict):
            pytest.xfail(f"{result.message} (does not decide conformance)")
        if result.verdict in ("unsupported", NOT_JUDGED):
            pytest.skip(result.message)
        if result.verdict in BAD and reason is not None:
            pytest.xfail(reason or "expected")
        wrong = self.parent.expected.contradiction(self.name, failed=result.verdict in BAD)
        if wrong:
            raise CaseFailure(wrong)
        if result.verdict in BAD:
            message = f"{result.verdict} {result.id}: {printable(result.message)}\nrepeat: {printable(result.reproduce)}"
            raise CaseFailure(message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the verdict without a traceback into posref."""
        return str(excinfo.value) if isinstance(excinfo.value, CaseFailure) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the name of the test for pytest's report."""
        return Path("posref"), None, self.name


class OperationItem(CaseItem):
    """A test that what an operation answers is a scope to conform in. It runs after the cases."""

    def __init__(self, *, key: tuple[str, str], **rest: Any) -> None:
        pytest.Item.__init__(self, **rest)
        self.key = key

    def runtest(self) -> None:
        """Raise if cases were refused and nothing explains it, or too little was answered."""
        from .model import NOTHING

        if not self.parent.whole(self.key[0]):
            pytest.skip("not all of its cases were chosen")
        operation = self.parent.operations[self.key][0]
        scope = operation.scope
        if scope is None and operation.counts.keys() == {"unsupported"}:  # in the smoke tier
            raise CaseFailure(NOTHING)
        if scope is not None and scope.wrong and not self._expected(scope):
            raise CaseFailure(scope.wrong)

    def _expected(self, scope: Scope) -> bool:
        """Return whether every case that was refused is expected to fail."""
        reasons = [self.parent.expected.reason(f"{case}[{dtype}]") for case, dtype in scope.refused]
        return bool(reasons) and None not in reasons


class MissingItem(pytest.Item):
    """A test that fails: the implementation lacks an operation that was named."""

    def runtest(self) -> None:
        """Raise."""
        msg = f"missing: the implementation has no {self.name}, which --posref-op asks for"
        raise CaseFailure(msg)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the sentence without a traceback into posref."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the name of the test for pytest's report."""
        return Path("posref"), None, self.name


class CaseFailure(Exception):
    """A verdict that is not a pass."""


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return a line that names the vectors."""
    if not any(config.getoption(name) for name in ("posref", "posref_target", "posref_command")):
        return []
    from .suite.reader import INSTALLED, load_manifest

    return [f"posref: vectors {load_manifest(INSTALLED)['suite']}"]
