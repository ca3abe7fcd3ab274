"""Broken kernels of queries and keys fail in every template and adapter whose library takes both in one call."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
import torch
from fake_libraries import TREES, imported
from sampling import few

import posref
from posref.conformance import check
from posref.conformance.adapters._shared import KV_HEADS
from posref.conformance.checks.case_run import ask, asked_in
from posref.conformance.checks.choice import Choice
from posref.conformance.commands.target_command import KINDS, LIKE, SUFFIX
from posref.conformance.model import LoadedCase
from posref.conformance.targets.loader import load
from posref.conformance.targets.python import ADAPTERS, FOLDER
from posref.spec import REGISTRY

PACKAGE = "posref.conformance.adapters"
QUERIES, KEYS, ALL = ("q", "query", "q_gate"), ("k", "key"), ("qkv",)  # parameters of a function that takes both
ARRAYS = {"x", "flat", "tokens", "rows", "q", "k", "query", "key"}
Pair = tuple[torch.Tensor, torch.Tensor]
Rotate = Callable[[torch.Tensor, torch.Tensor], Pair]


def _crossed(rotate: Rotate, q: torch.Tensor, k: torch.Tensor) -> Pair:
    q, k = rotate(q, k)
    half, each = k.shape[-1] // 2, q.shape[1] // k.shape[1]
    keys, queries = k.repeat_interleave(each, 1), q[:, ::each]
    return torch.cat((q[..., :half], keys[..., half:]), -1), torch.cat((queries[..., :half], k[..., half:]), -1)


def _of_query_head(rotate: Rotate, q: torch.Tensor, k: torch.Tensor) -> Pair:
    heads = torch.arange(k.shape[1]) * (q.shape[1] // k.shape[1]) % k.shape[1]
    return rotate(q, k[:, heads])


BROKEN: Mapping[str, Callable[[Rotate, torch.Tensor, torch.Tensor], Pair]] = {  # q (N, H, D) and k (N, G, D)
    "the key stays as it is": lambda rotate, q, k: (rotate(q, k)[0], k),
    "the query stays as it is": lambda rotate, q, k: (q[:, : rotate(q, k)[0].shape[1]], rotate(q, k)[1]),
    "the key is made from the query": lambda rotate, q, k: rotate(q, q[:, :: q.shape[1] // k.shape[1]]),
    "halves of query and key are crossed": _crossed,
    "the key's head is counted as the query's": _of_query_head,
    "the key is of the row before": lambda rotate, q, k: rotate(q, k.roll(1, 0)),
}


class Place(NamedTuple):
    """A function that takes both, where an adapter finds it."""

    owner: Any
    name: str
    function: Any

    @property
    def code(self) -> Any:
        """The function without what makes it static."""
        return getattr(self.function, "__func__", self.function)


def _takes_both(function: Any) -> bool:
    names = inspect.signature(getattr(function, "__func__", function)).parameters
    return (any(q in names for q in QUERIES) and any(k in names for k in KEYS)) or any(n in names for n in ALL)


def places(owner: Any, depth: int) -> Iterator[Place]:
    """Yield the functions that take both in a module, in the modules and classes that it has imported, and in theirs."""
    for name, value in list(vars(owner).items()):
        module = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None) or ""
        if module.split(".")[0] in ("posref", "torch", "numpy", "jax", "builtins"):
            continue
        if isinstance(value, FunctionType | staticmethod):
            if _takes_both(value):
                yield Place(owner, name, value)
        elif depth and isinstance(value, ModuleType | type):
            yield from places(value, depth - 1)


def replaced(place: Place, change: Callable[[Rotate, torch.Tensor, torch.Tensor], Pair]) -> Any:
    """Return the function of a place with what `change` makes of it."""
    signature = inspect.signature(place.code)

    def of_all(given: inspect.BoundArguments) -> None:
        qkv, *_, k_cache, v_cache, slots = (value for value in given.args if value.ndim > 0)
        keys, width = k_cache.shape[-2:]
        q, k, v = qkv.view(len(qkv), -1, width).clone().split((qkv.shape[1] // width - 2 * keys, keys, keys), 1)

        def rotate(q: torch.Tensor, k: torch.Tensor) -> Pair:
            made, room = torch.cat((q, k, v), 1).flatten(1), (k_cache.clone(), v_cache.clone())
            place.code(made, *given.args[1:-3], *room, slots, **given.kwargs)
            return tuple(made.view(len(made), -1, width)[:, : -len(v[0])].split((q.shape[1], keys), 1))  # type: ignore[return-value]

        q, k = change(rotate, q, k)
        place.code(*given.args, **given.kwargs)
        qkv[:] = torch.cat((q, k, v), 1).flatten(1)
        k_cache.flatten(0, 1)[slots[slots >= 0]] = k[slots >= 0]

    def wrong(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options)
        if any(name in given.arguments for name in ALL):
            return of_all(given)
        q_name, k_name = (next(n for n in names if n in given.arguments) for names in (QUERIES, KEYS))
        q, k = given.arguments[q_name], given.arguments[k_name]
        (axis,) = (n - k.ndim for n in range(k.ndim) if q.shape[n] != k.shape[n])  # other numbers of heads, and nothing else
        width = k.shape[-1] // KV_HEADS if axis == -1 else k.shape[-1]

        def plain(x: torch.Tensor) -> torch.Tensor:
            x = x.unflatten(-1, (-1, width)) if axis == -1 else x.movedim(axis, -2)
            return x.reshape(-1, *x.shape[-2:])

        def back(x: torch.Tensor) -> torch.Tensor:
            lead = k.shape[:-1] if axis == -1 else k.movedim(axis, -2).shape[:-2]
            x = x.reshape(*lead, *x.shape[-2:])
            return (x.flatten(-2) if axis == -1 else x.movedim(-2, axis)).contiguous()

        rest: Sequence[Any] | None = None

        def rotate(*both: torch.Tensor) -> Pair:
            nonlocal rest
            own = {name: back(x).clone() for name, x in zip((q_name, k_name), both, strict=True)}
            bound = signature.bind(*args, **options)
            bound.arguments.update(own)
            out = place.code(*bound.args, **bound.kwargs)
            rest = None if out is None else out[2:]
            return tuple(map(plain, own.values() if out is None else out[:2]))  # type: ignore[return-value]

        out = [back(x) for x in change(rotate, plain(q).clone(), plain(k).clone())]
        if rest is not None:
            return (*out, *rest)
        return [x.copy_(new) for x, new in zip((q, k), out, strict=True)] and None

    return staticmethod(wrong) if isinstance(place.function, staticmethod) else wrong


def judged(target: Any, case: LoadedCase) -> str:
    """Return the verdict of a case, in the first of the target's dtypes in which it is answered."""
    for dtype in target.dtypes:
        if dtype != "bfloat16" and asked_in(case, dtype) and (verdict := ask(target, case, dtype).verdict) != "unsupported":
            return verdict
    return "unsupported"


def seen(module: ModuleType, own: Sequence[ModuleType]) -> tuple[Any, dict[Place, list[LoadedCase]]]:
    """Return a target, and the functions that take both, each with cases of rotations that call it and pass."""
    target = load(module)
    functions = {id(place.code): place for owner in own for place in places(owner, 2)}
    cases: dict[Place, list[LoadedCase]] = {}
    called: set[int] = set()
    ever: set[int] = set()

    def watched(place: Place) -> Any:
        def change(rotate: Rotate, q: torch.Tensor, k: torch.Tensor) -> Pair:
            called.add(id(place.code))
            return rotate(q, k)

        return replaced(place, change)

    with pytest.MonkeyPatch.context() as patch:
        for place in functions.values():
            patch.setattr(place.owner, place.name, watched(place))
        for op in REGISTRY if functions else ():
            if REGISTRY[op].result == ("=x",) and target.has(op):
                for case in Choice(op=op).cases([op]):
                    called.clear()
                    if case.kind not in ("vjp", "reject") and judged(target, case) == "pass":
                        for code in called:
                            cases.setdefault(functions[code], []).append(case)
                    ever |= called
    lost = [functions[code].name for code in ever if functions[code] not in cases]
    assert not lost, f"no case passes that calls {lost}: queries and keys must differ in their numbers of heads"
    return target, cases


def assert_caught(target: Any, cases: Mapping[Place, Sequence[LoadedCase]]) -> None:
    """Fail unless every broken kernel in the place of every function fails a case."""
    passing = []
    for place, asked in cases.items():
        for kind, change in BROKEN.items():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(place.owner, place.name, replaced(place, change))
                if not any(judged(target, case) == "fail" for case in asked):
                    passing.append(f"{place.owner.__name__}.{place.name}: {kind}")
    assert not passing, passing


def _files_of(adapter: Any) -> list[ModuleType]:
    """Return an adapter and the other files of adapters whose functions it has."""
    names = dict.fromkeys(f.__module__ for f in vars(adapter).values() if inspect.isfunction(f))
    own = [name for name in names if name.startswith(f"{PACKAGE}.") and name != f"{PACKAGE}._shared"]
    return list({id(module): module for module in (adapter, *map(sys.modules.get, own))}.values())  # type: ignore[misc]


TEMPLATES = {kind: (LIKE / f"{kind}{SUFFIX}").read_text(encoding="utf-8").format(name="mine", file="mine.py") for kind in KINDS}
SLOW = ("transformers", "liger_kernel")  # which import transformers
HELPERS = ("queries_and_keys", "of_both", "of_flat", "of_weighted")
SIDED = [name for name in ADAPTERS if any(helper in (FOLDER / f"{name}.py").read_text(encoding="utf-8") for helper in HELPERS)]
SOURCES = TEMPLATES | {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.py")}


@few(1, "kind", [pytest.param(k, marks=pytest.mark.thorough) if k in SLOW else k for k in KINDS])
def test_templates(kind: str) -> None:
    made = ModuleType("made")
    exec(TEMPLATES[kind], vars(made))
    target, cases = seen(made, [made])
    owners = [made, *(one for one in vars(made).values() if inspect.isclass(one) and one.__module__ == "made")]
    assert bool(cases) == any(_takes_both(f) for owner in owners for f in vars(owner).values() if inspect.isfunction(f))
    assert_caught(target, cases)


OF_VALUES = [kind for kind, text in TEMPLATES.items() if "qkv" in text]


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("kind", OF_VALUES)
def test_templates_see_values_that_are_rotated(kind: str, wrong: bool) -> None:
    made: dict[str, Any] = {}
    exec(TEMPLATES[kind], made)
    kernel = made["library_kernel"]

    def rotated(
        qkv: Any, q: Any, k: Any, positions: Any, table: Any, keys: Any, values: Any, slots: Any, **options: Any
    ) -> None:
        of_keys, width = qkv.clone(), keys[0, 0].numel()
        of_keys[:, -2 * width : -width] = qkv[:, -width:]
        kernel(qkv, q, k, positions, table, keys, values.clone(), slots, **options)
        kernel(of_keys, q, k, positions, table, values, values.clone(), slots, **options)

    if wrong:
        made["library_kernel"] = rotated
    arrays = torch.zeros(4, 3, 2, 8), torch.linspace(3, 7, 4 * 2 * 8).reshape(4, 2, 8), torch.tensor([4, -1, 10, 0])
    assert torch.equal(made["write_cache"](*arrays), posref.write_cache(*arrays)) != wrong


IN_EIGHT_BITS: Mapping[
    str, Callable[..., tuple[Any, ...]]
] = {  # what a broken kernel makes of its arrays; all turn by half a turn
    "right": lambda *arrays: arrays,
    "the key stays as it is": lambda q, k, *rest: (q, -k, *rest),
    "the query stays as it is": lambda q, k, *rest: (-q, k, *rest),
    "the key is made from the query": lambda q, k, q_rest, k_rest: (q, q[:, 0], q_rest, q_rest[:, 0]),
    "halves of query and key are crossed": lambda q, k, q_rest, k_rest: (
        q,
        k,
        k_rest[:, None].expand(q_rest.shape),
        q_rest[:, 0],
    ),
    "the query's head is another": lambda q, k, q_rest, k_rest: (q.flip(1), k, q_rest.flip(1), k_rest),
    "the key is of the row before": lambda q, k, q_rest, k_rest: (q, k.roll(1, 0), q_rest, k_rest.roll(1, 0)),
}


@pytest.mark.parametrize("kind", [kind for kind, text in TEMPLATES.items() if "def library_quantize" in text])
@pytest.mark.parametrize("wrong", IN_EIGHT_BITS)
def test_templates_see_queries_and_keys_in_eight_bits(kind: str, wrong: str) -> None:
    made: dict[str, Any] = {}
    exec(TEMPLATES[kind], made)
    kernel = made["library_quantize"]
    made["library_quantize"] = lambda *arrays, **options: kernel(*IN_EIGHT_BITS[wrong](*arrays[:4]), *arrays[4:], **options)
    x, how = torch.linspace(-3, 5, 5 * 2 * 6).reshape(5, 2, 6), {"format": "e4m3fn", "direction": "multiply"}
    scale = torch.tensor([0.5, 1.5])
    assert torch.equal(made["to_float8"](x, scale, **how), posref.to_float8(x, scale, **how)) == (wrong == "right")


CALLED = {  # by the kind of broken kernel
    "the key stays as it is": "key-not-rotated",
    "the query stays as it is": "query-not-rotated",
    "the key is made from the query": "key-from-query",
    "halves of query and key are crossed": "second-halves-crossed",
    "the key is of the row before": "key-of-row-before",
}


@few(1, "kind, name", CALLED.items())
@few(1, "template, op", [("hf", "apply_rope"), ("vllm", "rope")])
def test_the_report_says_what_is_wrong_with_the_key(template: str, op: str, kind: str, name: str) -> None:
    made = ModuleType("made")
    exec(TEMPLATES[template], vars(made))
    (place,) = places(made, 0)
    setattr(made, place.name, replaced(place, BROKEN[kind]))
    report = check(made, op=op, dtype="float32", experiments=0)
    (operation,) = report.operations
    assert operation.diagnosis["names"] == [name], operation.diagnosis["text"]


@pytest.mark.thorough(dear=True)
@few(2, "name", [pytest.param(n, marks=pytest.mark.thorough) if n in SLOW else n for n in dict.fromkeys((*SIDED, *TREES))])
def test_adapters(name: str, tmp_path: Path) -> None:
    """An adapter of functions that take both needs a library here, or a fake one."""
    with imported(name, tmp_path) if name in TREES else nullcontext(import_module(f"{PACKAGE}.{name}")) as adapter:
        target, cases = seen(adapter, _files_of(adapter))
        assert_caught(target, cases)
    assert bool(cases) == (name in SIDED)


@pytest.mark.parametrize("name", SOURCES)
def test_no_function_gets_one_array_as_query_and_key(name: str) -> None:
    """Where it is not installed, and no fake library is, nothing else tells that a function takes both."""
    twice = []
    for call in (node for node in ast.walk(ast.parse(SOURCES[name])) if isinstance(node, ast.Call)):
        names = [_array(argument) for argument in call.args]
        twice += [ast.unparse(call) for array in ARRAYS if names.count(array) > 1]
    assert not twice, twice


def _array(argument: ast.expr) -> str:
    """Return the name of an array, also where one of its methods is called: ``flat`` of ``flat.clone()``."""
    while isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute):
        argument = argument.func.value
    return argument.id if isinstance(argument, ast.Name) else ""
