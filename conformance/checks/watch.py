"""Records the calls that a user's code makes while it runs, and judges them afterwards."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

import posref
from posref.spec import REGISTRY

from ..calls import parameters_of, positions_of
from ..errors import Failure, PosrefError, TargetError
from ..model import NOT_JUDGED, Call, Case
from ..proof.evaluation import plain, wide
from ..proof.live_truth import choose
from ..targets.invocation import OVERWRITTEN, Collected, same_bits
from ..vocabulary.axes import Budget, rows_of
from .assertion import call_of, fault_in, on_host, results_on_host

NAME = "watch"
MISSING = object()
SAVED = Budget(values=1 << 12, terms=1 << 18)  # of a call in a suite: so many are proved in seconds
UNCHANGED = "unchanged"  # in place of an operation: the result is the one array, in every bit
FORMS = "None, (op, arrays, options), the same with a key or function that picks the result, or a list of them"
Question = tuple[str, Sequence[Any], Mapping[str, Any], Any]


@dataclass
class Seen:
    """A recorded call: operation, arguments, result, and how often it was made."""

    op: str
    call: Call
    found: Collected
    fault: str | None = None  # what is wrong with it, or why nothing can be said
    verdict: str = ""  # "pass", "fail" or "not-judged", once it is judged
    times: int = 1
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        """Find the dtype of the results, that of the first that has one."""
        self.dtype = next((d for _, d in self.found.values() if d is not None), "")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arguments by name."""
        return {name: x.shape for name, x in self.call.inputs.items()}

    @property
    def size(self) -> int:
        """The bytes that are kept of it."""
        return sum(x.nbytes for x in self.call.inputs.values()) + sum(x.nbytes for x, _ in self.found.values())

    def digest(self) -> bytes:
        """Return what equal calls with equal results have in common."""
        hash_ = hashlib.blake2b(repr((self.op, self.call.params, self.fault)).encode())
        for name, x in [*self.call.inputs.items(), *((n, x) for n, (x, _) in self.found.items())]:
            hash_.update(repr((name, x.shape, x.dtype.str, self.dtype)).encode())
            hash_.update(np.ascontiguousarray(x).data)
        return hash_.digest()

    def judge(self, claim: str | None, *, why: bool) -> None:
        """Find the verdict, once; where that is a failure `why` wants the diagnosis, which may take seconds."""
        if self.verdict:
            return
        if self.op == UNCHANGED and self.fault is None:
            self.fault = _change(self.call.inputs["x"], self.found["out"][0])
        elif self.fault is None:
            try:
                self.fault = fault_in(NAME, self.op, self.call, self.found, claim, why=why)
            except (PosrefError, TypeError, ValueError) as error:  # also those of a definition that refuses the call
                self.fault, self.verdict = str(error), NOT_JUDGED
                return
        self.verdict = "pass" if self.fault is None else "fail"

    def case(self, number: int, comment: str) -> Case:
        """Return the call as a case; of a large one, some rows of it."""
        inputs = wide(self.call.inputs)
        near = plain(self.op, inputs, self.call.params)
        rows = rows_of(self.op, inputs, self.call.params, {n: y.shape for n, y in near.items()})
        outputs = {n: np.broadcast_to(self.found[n][0] if n in self.found else y, y.shape) for n, y in near.items()}
        selection = choose(rows, outputs, near, SAVED)
        part = rows.cut(inputs, selection)
        return Case(f"{self.op}/watched/call-{number}", self.call.params, part, comment)


class Watch:
    """The calls of one function within the block; reading them judges them."""

    def __init__(
        self, target: Any, name: str | None, like: Callable[..., Any], claim: str | None, keep: int, memory: int
    ) -> None:  # fmt: skip
        if keep < 1 or memory < 1:
            msg = f"{NAME}: keep and memory must be at least 1; got {keep} and {memory}."
            raise TargetError(msg)
        self._place = Place(target, name)
        self._like, self._claim, self._keep, self._memory = like, claim, keep, memory
        self._kept: dict[bytes, Seen] = {}
        self._total = self._unkept = self._bytes = 0  # a call that answers two questions counts as two
        self._open = self._used = False
        self._lock, self._own = threading.Lock(), threading.local()
        self._random = random.Random(0)  # the same calls are kept every time
        self._last = LastResult([], None)

    def __enter__(self) -> Watch:
        """Put a wrapper in the function's place."""
        if self._used:
            msg = f"{NAME}: a watch is used once; make another for the next block."
            raise TargetError(msg)
        self._used = self._open = True
        self._place.replace(self._wrapped)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Put the function back; wrappers that somebody still holds do nothing more."""
        self._open = False
        self._place.put_back()

    # ---- recording --------------------------------------------------------------------------------------------------------
    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*arguments: Any, **keywords: Any) -> Any:
            if not self._open or getattr(self._own, "busy", False):  # `like` itself may call the function
                return function(*arguments, **keywords)
            with self._busy():
                asked = self._asked(arguments, keywords)
                last = self._last
                before = last.read([array for question, _ in asked for array in question[1]])
            result = function(*arguments, **keywords)
            with self._busy():
                self._store(asked, result, last.changed_since(before))
            return result

        return _untraced(watched)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """Record nothing that this thread calls."""
        self._own.busy = True
        try:
            yield
        finally:
            self._own.busy = False

    def _asked(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[tuple[Question, Call | None]]:
        """Return what a call asks, its arrays copied before it may change them; without them it is only counted."""
        questions = _questions(self._like(*arguments, **keywords))
        with self._lock:
            chosen = len(self._kept) < self._keep or self._random.random() < self._keep / (self._total + 1)
        return [(question, self._copied(*question[:3]) if chosen else None) for question in questions]

    def _copied(self, op: str, arrays: Sequence[Any], options: Mapping[str, Any]) -> Call:
        try:
            call = _kept(arrays, options) if op == UNCHANGED else call_of(NAME, op, arrays, options)
        except (PosrefError, MemoryError):
            raise
        except Exception as error:
            msg = f"{NAME}: the arguments of {self._place.text} cannot be copied, as in code that is traced: {error}"
            raise TargetError(msg) from error
        return Call(call.params, {n: _narrow(x) for n, x in call.inputs.items()})

    def _store(self, asked: list[tuple[Question, Call | None]], result: Any, overwritten: str) -> None:
        """Keep what a call asked and gave, if it is new and there is room, or count it."""
        seen = [None if call is None else _answered(question, call, result) for question, call in asked]
        if overwritten:
            seen = [one and replace(one, fault=f"{one.op}: {OVERWRITTEN.format(overwritten)}.") for one in seen]
        self._last = LastResult(asked, result)
        keys = [None if one is None else one.digest() for one in seen]
        with self._lock:
            if not self._open:
                return
            self._total += len(seen)
            for key, one in zip(keys, seen, strict=True):
                if key in self._kept:
                    self._kept[key].times += 1
                elif key is not None and one is not None and self._makes_room(one.size):
                    self._kept[key] = one
                    self._bytes += one.size
                else:
                    self._unkept += 1

    def _makes_room(self, size: int) -> bool:
        """Return whether one more call can be kept, if need be in place of a later one that is drawn."""
        if self._bytes + size > self._memory:
            return False
        if len(self._kept) >= self._keep:
            later = list(self._kept)[(self._keep + 1) // 2 :]  # the first half stays
            if not later:
                return False
            gone = self._kept.pop(self._random.choice(later))
            self._unkept += gone.times
            self._bytes -= gone.size
        return True

    # ---- what was seen ----------------------------------------------------------------------------------------------------
    @property
    def calls(self) -> tuple[Seen, ...]:
        """The calls that were kept, different ones, judged. Of those that fail alike the first has a diagnosis."""
        explained = set()
        for seen in self._kept.values():
            question = (seen.op, seen.dtype, repr(seen.call.params))
            seen.judge(self._claim, why=question not in explained)
            if seen.verdict == "fail":
                explained.add(question)
        return tuple(self._kept.values())

    @property
    def failed(self) -> tuple[Seen, ...]:
        """The kept calls that did not pass: what cannot be judged has failed."""
        return tuple(seen for seen in self.calls if seen.verdict != "pass")

    def report(self) -> str:
        """Return the recorded kinds of calls, with shapes, positions and verdicts."""
        return "\n".join([self._counted(), *_lines(self.calls)])

    def assert_conforms(self) -> None:
        """Raise AssertionError unless a call was seen and every kept one conforms."""
        __tracebackhide__ = True
        failed = self.failed
        if failed or not self._kept:
            raise AssertionError("\n".join([self._counted(), *_lines(failed)]))

    def save(self, directory: str | Path) -> None:
        """
        Write the kept calls as a suite that ``posref check --suite`` takes, with values that two witnesses prove.

        Of large calls some rows are written. This needs the extra ``vectors``.
        """
        from ..proof.build import write_suite

        if not self._kept:
            msg = f"{NAME}: no call was seen, so there is nothing to save."
            raise TargetError(msg)
        by_op: dict[str, list[Case]] = {}
        for number, seen in enumerate((one for one in self._kept.values() if one.op != UNCHANGED), 1):
            by_op.setdefault(seen.op, []).append(seen.case(number, f"seen in {self._place.text}"))
        write_suite(Path(directory), by_op)

    def _counted(self) -> str:
        if not self._total:
            hint = ", ".join(self._place.elsewhere())
            also = f" It was imported elsewhere: watch {hint}." if hint else " Watch it where it is looked up when called."
            return f"{self._place.text}: no call was seen.{also}"
        unkept = f", {self._unkept} not kept" if self._unkept else ""
        verdict = f"{len(self.failed)} did not pass" if self.failed else "all pass" if self._kept else "none judged"
        return f"{self._place.text}: {_calls(self._total)} seen, {len(self._kept)} different judged{unkept}; {verdict}"


class LastResult:
    """The result of the last call, if that was copied: whether the next call overwrites it."""

    def __init__(self, asked: list[tuple[Question, Call | None]], result: Any) -> None:
        self._question = next((question for question, call in asked if call is not None), None)
        self._result = result

    def _now(self) -> Collected:
        """Return what the result is now; nothing if it cannot be read."""
        if self._question is None:
            return {}
        op, arrays, _, pick = self._question
        try:
            return _read(op, _picked(self._result, pick), arrays)
        except Failure:
            return {}

    def read(self, given: Sequence[Any]) -> Collected:
        """Return a copy of the result; nothing if it is among the arrays of the next call."""
        outputs = self._now()
        if any(np.may_share_memory(x, on_host(array)) for array in given for x, _ in outputs.values()):
            return {}
        return {name: (np.array(x), dtype) for name, (x, dtype) in outputs.items()}

    def changed_since(self, before: Collected) -> str:
        """Return the name of an array that changed since `before`; empty if none did."""
        now = self._now() if before else {}
        return next((name for name, (x, _) in before.items() if name in now and not same_bits(x, now[name][0])), "")


def _picked(result: Any, pick: Any) -> Any:
    """Return what `like` wants of a result."""
    return result if pick is None else pick(result) if callable(pick) else result[pick]


def _read(op: str, picked: Any, arrays: Sequence[Any]) -> Collected:
    """Return a result on the host; what must be unchanged is one array, as that of a rotation."""
    return results_on_host(posref.rope.__name__ if op == UNCHANGED else op, picked, arrays)


def _untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that PyTorch's compiler does not trace, if this compiler is loaded."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None:
        return function
    as_it_is: Callable[..., Any] = dynamo.disable(function)
    return as_it_is


def _questions(answer: Any) -> list[Question]:
    """Return what `like` says that a call asks."""
    if answer is None:
        return []
    questions = []
    for one in answer if isinstance(answer, list) else [answer]:
        fits = isinstance(one, tuple) and len(one) in (3, 4) and isinstance(one[0], str) and isinstance(one[1], tuple | list)
        if not (fits and isinstance(one[2], Mapping)):
            msg = f"{NAME}: like must return {FORMS}; got {type(one).__name__}."
            raise TargetError(msg)
        questions.append((*one, None)[:4])
    return questions


def _answered(question: Question, call: Call, result: Any) -> Seen:
    """Return a call with its result, copied."""
    op, arrays, _, pick = question
    try:
        by_name = _read(op, _picked(result, pick), arrays)
    except Failure as failure:
        outputs = 1 if op == UNCHANGED else len(REGISTRY[op].outputs)
        several = pick is None and isinstance(result, tuple | list) and len(result) > outputs
        remedy = f" Of several results `like` picks one: ({op!r}, arrays, options, 0)." if several else ""
        return Seen(op, call, {}, f"{op}: {failure}.{remedy}")
    return Seen(op, call, {n: (_narrow(x), dtype) for n, (x, dtype) in by_name.items()})


def _kept(arrays: Sequence[Any], options: Mapping[str, Any]) -> Call:
    """Return a call whose result must be its array."""
    if len(arrays) != 1 or options:
        msg = f"{NAME}: {UNCHANGED!r} takes one array and no options, ({UNCHANGED!r}, [x], {{}}); got {len(arrays)} arrays."
        raise TargetError(msg)
    return Call({}, {"x": on_host(arrays[0])})


def _change(x: npt.NDArray[Any], result: npt.NDArray[Any]) -> str | None:
    """Return what is wrong with a result that must be `x`."""
    if x.shape != result.shape:
        return f"{UNCHANGED}: the result must have the shape of x, {x.shape}; got {result.shape}."
    differs = (x != result) & ~(np.isnan(x) & np.isnan(result))
    if not np.any(differs):
        return None
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return (
        f"{UNCHANGED}: this layer must not rotate, but {np.count_nonzero(differs)} of {x.size} values differ from x; "
        f"out{list(place)} is {result[place]:.9g}, must be {x[place]:.9g}."
    )


def _narrow(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy, in float32 if that has the same values."""
    if x.dtype != np.float64:
        return np.array(x)
    with np.errstate(over="ignore"):
        small = x.astype(np.float32)
    return small if np.array_equal(small, x, equal_nan=True) else np.array(x)


def _lines(calls: Sequence[Seen]) -> Iterator[str]:
    """Yield what was seen, a line for calls of one shape and verdict, with the fault of the first."""
    kinds: dict[Any, list[Seen]] = {}
    for seen in calls:
        kinds.setdefault((seen.verdict, seen.op, seen.dtype, repr(seen.call.params), repr(seen.shapes)), []).append(seen)
    for (verdict, *_), alike in kinds.items():
        yield f"  {verdict}: {_kind(alike)}"
        if alike[0].fault is not None:
            yield from (f"    {line}" for line in alike[0].fault.splitlines())


def _kind(alike: Sequence[Seen]) -> str:
    """Return what calls of one kind have in common, the range of their positions, and how many they are."""
    first, times = alike[0], sum(seen.times for seen in alike)
    arrays = []
    for name, shape in first.shapes.items():
        values = [seen.call.inputs[name] for seen in alike if seen.call.inputs[name].size]
        numbers = ""
        if first.op != UNCHANGED and name in positions_of(first.op) and values:
            numbers = f", {min(x.min() for x in values)} to {max(x.max() for x in values)}"
        arrays.append(f"{name} {shape}{numbers}")
    parameters = {} if first.op == UNCHANGED else parameters_of(REGISTRY[first.op].function)
    defaults = {n: p.default for n, p in parameters.items()}
    options = [f"{n}={v!r}" for n, v in first.call.params.items() if v != defaults[n]]
    dtype = f" in {first.dtype}" if first.dtype else ""
    return f"{first.op}{dtype}: {'; '.join([*arrays, *options])} ({_calls(times)})"


def _calls(count: int) -> str:
    return f"{count} {'call' if count == 1 else 'calls'}"


# ---- a function replaced where it is looked up: by a module, a class or an object, and put back ----------------------------
class Place:
    """An attribute that holds a function: ``"module:attribute"``, ``"module:Class.method"``, or an object and a name."""

    def __init__(self, target: Any, name: str | None) -> None:
        self.owner, self.name = _found(target, name)
        self.text = target if isinstance(target, str) else f"{getattr(target, '__name__', type(target).__name__)}.{name}"
        self.function = getattr(self.owner, self.name, MISSING)
        if not callable(self.function):
            what = "has nothing of that name" if self.function is MISSING else f"is {type(self.function).__name__}"
            msg = f"{NAME}: target must name a function; {self.text} {what}."
            raise TargetError(msg)
        self._raw: Any = MISSING

    def replace(self, wrapped: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Put a wrapper of the function there; as a method it gets what the function gets, its object first."""
        self._raw = vars(self.owner).get(self.name, MISSING) if hasattr(self.owner, "__dict__") else MISSING
        function: Any = getattr(self.owner, self.name)  # which may be another by now
        if isinstance(self.owner, type):
            static = inspect.getattr_static(self.owner, self.name)
            if isinstance(static, staticmethod | classmethod):
                function = type(static)(wrapped(static.__func__))
            else:
                function = wrapped(static) if isinstance(static, FunctionType) else staticmethod(wrapped(function))
        else:
            function = wrapped(function)
        try:
            setattr(self.owner, self.name, function)
        except (AttributeError, TypeError) as error:
            msg = f"{NAME}: {self.text} cannot be replaced: {error}. Name the method or module where it is called."
            raise TargetError(msg) from error

    def put_back(self) -> None:
        """Leave the attribute as it was."""
        if self._raw is MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self._raw)

    def elsewhere(self) -> list[str]:
        """Return other modules that hold the same function, as ``module:name``: they imported it before."""
        held = []
        for module, names in [(m, dict(vars(m))) for m in list(sys.modules.values()) if isinstance(m, ModuleType)]:
            held += [f"{module.__name__}:{n}" for n, x in names.items() if x is self.function and module is not self.owner]
        return sorted(set(held))


def _found(target: Any, name: str | None) -> tuple[Any, str]:
    """Return what holds an attribute, and the attribute's name."""
    if not isinstance(target, str):
        if name is None:
            msg = f'{NAME}: target must be "module:attribute", or an object and a name; got {target!r} alone.'
            raise TargetError(msg)
        return target, name
    module, _, path = target.partition(":")
    if name is not None or not (module and path):
        msg = f'{NAME}: target must be "module:attribute", or an object and a name; got {target!r}.'
        raise TargetError(msg)
    try:
        owner: Any = importlib.import_module(module)
        *parents, last = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
    except (ImportError, AttributeError) as error:
        msg = f"{NAME}: {target} cannot be found: {error}."
        raise TargetError(msg) from error
    return owner, last
