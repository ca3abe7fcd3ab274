"""What is said of an operation: its docstring, title, idea and words of options, the command line, the page of the vectors."""

import doctest
import inspect
import re
from functools import cache
from pathlib import Path

from commands import run

from posref import plots
from posref.about import ABOUT, FAMILIES, Word
from posref.plots.pictures import PICTURES
from posref.spec import OneOf

from .encoding import Encoding, part

ROOT = Path(__file__).parents[2]
SECTIONS = ("Examples", "Returns", "Parameters")


@part()
def docstring_has_its_sections(encoding: Encoding) -> None:
    assert doctest.DocTestFinder().find(encoding.function, encoding.op)[0].examples
    for section in SECTIONS:
        assert f"    {section}\n    {'-' * len(section)}\n" in str(encoding.function.__doc__), section


@part()
def title_and_idea(encoding: Encoding) -> None:
    op, family = encoding.op, encoding.record.family
    file = Path(inspect.unwrap(encoding.function).__code__.co_filename).name
    assert op in ABOUT, f"{file}: @encoding of {op} needs a title, the field's own name, and an idea."
    assert [name for name, said in FAMILIES.items() if op in said.ABOUT] == [family]
    about = ABOUT[op]
    assert about.title
    assert 15 <= len(about.idea.split()) <= 60, f"{file}: the idea of {op} has {len(about.idea.split())} words, not 15 to 60."
    assert about.idea.endswith("."), f"{file}: the idea of {op} does not end in a full stop."


@part()
def words_of_options_have_meanings(encoding: Encoding) -> None:
    op, file = encoding.op, Path(inspect.unwrap(encoding.function).__code__.co_filename).name
    for option, domain in encoding.record.domains.items():
        for word in domain.words if isinstance(domain, OneOf) else ():
            meaning = ABOUT[op].words.get(option, {}).get(word, Word("")).meaning
            told = f"{file}: {op} needs a sentence on {option}={word!r}; got {meaning!r}."
            assert re.fullmatch(r"[A-Z].{10,}\.", meaning), told


@part()
def shown_by_the_command_line(encoding: Encoding) -> None:
    result = run("show", encoding.op)
    assert result.exit_code == 0, result.output
    assert encoding.record.source in result.output
    assert "Parameters" in result.output


@cache
def page_of_the_vectors() -> str:
    return (ROOT / "conformance" / "vectors" / "README.md").read_text(encoding="utf-8")


@part()
def row_of_the_page_of_vectors(encoding: Encoding) -> None:
    """It lists arguments, their defaults and outputs."""
    found = re.findall(rf"^\| `{encoding.op}` \|(.*)\|$", page_of_the_vectors(), re.MULTILINE)
    assert len(found) == 1, f"conformance/vectors/README.md has {len(found)} rows of {encoding.op}: python docs/generate.py"
    row = found[0]
    for name, parameter in inspect.signature(encoding.function).parameters.items():
        if name in ("xp", "device", "dtype"):
            continue
        assert re.search(rf"\b{name}\b", row), name
        if type(parameter.default) in (int, float, bool):
            assert f"{name} ({str(parameter.default).lower().removesuffix('.0')})" in row
        elif parameter.default is None:
            assert re.search(rf"\b{name} \((null|none)", row), name
    assert all(re.search(rf"\b{name}\b", row) for name in encoding.record.outputs)


@part()
def has_a_picture_that_shows_its_property(encoding: Encoding) -> None:
    places = f"posref/plots/pictures/{encoding.record.family}.py"
    assert encoding.op in PICTURES, f"write a function of this name in {places} that draws or tests the picture"
    assert plots.kinds_of(encoding.op)
    chart, picture = plots.chart(encoding.op), PICTURES[encoding.op]
    assert picture.holds(chart), f"the picture does not show that {picture.says}"
    assert chart.title
    assert chart.x_label
    assert chart.y_label
    assert sum(array.size for array in chart.arrays().values()) > 1
