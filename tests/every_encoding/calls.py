"""What the registry says of arguments and results, on every case of the suite and on calls drawn at random."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
from described import KINDS, matches
from hypothesis import given, settings

import posref
from posref.conformance.calls import bind, positions_of, takes_dtype
from posref.conformance.fuzzing import hunt, strategies
from posref.conformance.model import Call
from posref.conformance.vocabulary.axes import holds, names_in, places
from posref.conformance.vocabulary.traits import defaults, letters
from posref.spec import REGISTRY, Integer, Integers, OneOf

from .encoding import Encoding, part

ROOT = Path(str(posref.__file__)).parent
ELSEWHERE = {"dtype", "xp", "device"}  # where and in what to compute
DRAWS = 8  # a thorough run draws 250
DEMAND = re.compile(r"\b(must|multiple|at least (\d+|one)|after)\b", re.IGNORECASE)
NO_DEMAND = {  # sentences of arguments with such a word that ask nothing of a call which its shapes do not say
    "H is a multiple of G": "the axes say it",
    "Integers must be below 2^53": "positions of that size are those of no token",
    "must broadcast": "the axes say it",
    "in the layout of": "how weights were made",
    "after the softmax": "which weights these are",
    "after the scale": "where it is added",
    "after its bias": "which x this is",
    "after their rotation": "which rows these are",
    "after the shift": "which coordinate this is",
    "after the query": "what a word means",
    "and after": "what a word means",
    "after the other": "an order",
    "after all others": "an order",
    "after its own": "an order",
    "stands after": "an order",
    "reshape after": "what a caller does",
    "makes the factor at least 1": "what a word means",
    "after weight normalisation": "which weight this is",
    "for ``NTKAware``": "the record requires it",
}


@part()
def one_name(encoding: Encoding) -> None:
    """Function, `posref.<name>`, record and file agree; arrays are positional-only and options keyword-only."""
    name, record = encoding.op, encoding.record
    assert Path(inspect.unwrap(record.function).__code__.co_filename).relative_to(ROOT) == Path(record.family, f"{name}.py")
    assert getattr(posref, name) is record.function
    assert name in posref.__all__
    parameters = inspect.signature(record.function).parameters.values()
    assert {p.kind for p in parameters} <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY}
    assert set(record.domains) <= {p.name for p in parameters}


@part()
def arguments_are_described(encoding: Encoding) -> None:
    record = encoding.record
    taken = set(inspect.signature(record.function).parameters)
    assert taken == {*record.arrays, *record.domains} | (ELSEWHERE & taken)
    for axes in record.arrays.values():
        assert axes.kind in KINDS


@part()
def words_are_those_of_the_type(encoding: Encoding) -> None:
    """What a checker accepts, what the registry lists and what the function takes have one source."""
    record = encoding.record
    hints = get_type_hints(record.function)
    typed = {option: get_args(hints[option]) for option in inspect.signature(record.function).parameters if option in hints}
    words = {option: domain.words for option, domain in record.domains.items() if isinstance(domain, OneOf)}
    assert {o: w for o, w in typed.items() if w and all(isinstance(word, str) for word in w)} == words


@part()
def a_word_that_is_not_given_is_asked_for(encoding: Encoding) -> None:
    """The error says the words, under the name of the function that was called; the signature has no default."""
    op, record = encoding.op, encoding.record
    parameters = inspect.signature(record.function).parameters
    required = {
        n: d.words
        for n, d in record.domains.items()
        if isinstance(d, OneOf) and parameters[n].default is inspect.Parameter.empty
    }
    call = encoding.calls("value")[0]
    for option, words in required.items():
        positional, keywords = bind(op, call.inputs, call.params)
        del keywords[option]
        try:
            record.function(*positional, **keywords)
        except TypeError as error:
            said = str(error)
        else:
            said = "no error"
        expected = f"{op}: {option} must be given, as one of {', '.join(map(repr, words))}. It has no default: "
        assert said.startswith(expected), said


@part()
def results_have_their_axes(encoding: Encoding) -> None:
    """Together with the arguments' axes, on the calls of the suite: one size for every letter."""
    record, calls = encoding.record, encoding.calls("value", "sequence")
    assert calls
    for call in calls:
        for output, axes in zip(record.outputs, record.result, strict=True):
            shape = call.expected[output].shape
            described = matches(encoding.op, dict(call.params), call.inputs, {axes: np.zeros(shape)})
            assert described, f"{encoding.op}: {output} has shape {shape}"


@part(of=lambda op: bool(positions_of(op)))
def values_stand_at_positions(encoding: Encoding) -> None:
    """A report says "at position" and the first failing position of every operation with positions."""
    calls = encoding.calls("value")
    assert any(places(encoding.op, call, output) is not None for call in calls for output in call.expected)


@part()
def cases_are_described(encoding: Encoding) -> None:
    """Every case that is not a refusal is a call that the registry describes, as its source states it."""
    asked = [(case.id, call) for case in encoding.built if case.kind != "reject" for call in case.calls]
    assert asked
    for name, call in asked:
        inputs = {n: np.asarray(v) for n, v in call.inputs.items()}
        for n, value in inputs.items():
            assert value.dtype.kind in KINDS[encoding.record.arrays[n].kind], (name, n)
        assert matches(encoding.op, dict(call.params), inputs), name


@part()
def what_an_argument_demands_is_registered(encoding: Encoding) -> None:
    """A docstring's "must", "multiple", "at least" and "after" is a domain, a requirement, or one of `NO_DEMAND`."""
    for name, sentence in _demands(encoding.record.function):
        told = any(words in sentence for words in NO_DEMAND)
        assert told or _is_registered(encoding.op, name, sentence), f"{name}: {sentence!r} is neither in requires nor a domain"


def _demands(function: object) -> Iterator[tuple[str, str]]:
    """Yield the sentences on arguments that may ask something of a call, each with the argument's name."""
    body = (inspect.getdoc(function) or "").partition("Parameters\n-")[2].partition("\nReturns\n-")[0]
    for entry in re.split(r"\n(?=\w)", body):
        head, _, text = entry.partition("\n")
        for sentence in re.split(r"(?<=[.;:]) ", " ".join(text.split())):
            yield from ((name.strip(), sentence) for name in head.partition(" :")[0].split(",") if DEMAND.search(sentence))


def _is_registered(op: str, name: str, sentence: str) -> bool:
    """Return whether a domain, the domain of an array's numbers, or a requirement that has the argument's name says it."""
    record = REGISTRY[op]
    domain, axes = record.domains.get(name), record.arrays.get(name)
    symbols = {name, *re.findall(r"\w+", axes.shape if axes else "")}
    required = any(symbols & {*names_in(text)} for text in record.requires)
    if "multiple" in sentence:
        stepped = isinstance(domain, Integer | Integers) and domain.step > 1
        return stepped or any("%" in text and name in names_in(text) for text in record.requires)
    if isinstance(domain, Integer | Integers) and (least := re.search(r"[Aa]t least (\d+)", sentence)):
        return domain.low >= int(least[1]) or required
    return required or (axes is not None and (axes.low is not None or axes.positive))


@part()
def cases_meet_what_is_required(encoding: Encoding) -> None:
    for case in encoding.stored:
        for call in case.calls if case.kind != "reject" else ():
            known = {**defaults(encoding.op), **call.params}
            for sizes in letters(encoding.op, call).values():
                known |= {letter: size[0] for letter, size in sizes.items() if len(size) == 1 and letter not in known}
            assert all(holds(text, known) for text in encoding.record.requires), case.id


@part(dear=True)
def drawn_calls_are_accepted(encoding: Encoding) -> None:
    assert_accepted(encoding.op, DRAWS)


def drawn_calls(op: str, count: int) -> Iterator[Call]:
    """Yield what the fuzzer draws from so many fixed buffers of random bytes."""
    seen: list[Call] = []

    @settings(database=None)
    @given(strategies.calls(op, "float32"))
    def draw(drawn: Call) -> None:
        seen.append(drawn)

    for n in range(count):
        draw.hypothesis.fuzz_one_input(np.random.default_rng(n).bytes(1 << 13))
    yield from seen


def assert_accepted(op: str, count: int) -> None:
    """Every draw is a call that the definition takes; of floats, one that the dtype holds, and of all kinds."""
    seen = list(drawn_calls(op, count))
    assert len(seen) >= count // 8  # a buffer that misses what the operation requires is no call
    for drawn in seen:
        positional, keywords = bind(op, drawn.inputs, drawn.params)
        if takes_dtype(op):
            keywords["dtype"] = np.float32
        with np.errstate(all="ignore"):
            REGISTRY[op].function(*positional, **keywords)
        assert matches(op, drawn.params, drawn.inputs), hunt.written(op, drawn)
        for value in drawn.inputs.values():
            assert isinstance(value, np.ndarray)
            assert value.dtype.kind != "f" or np.array_equal(value, value.astype(np.float32))
    varied = {n for drawn in seen for n in drawn.params}
    assert varied == set(REGISTRY[op].domains) or count < 100
