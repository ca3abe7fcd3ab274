"""
Writes the files of a new encoding, modelled on another one, its picture, and its lines in posref/__init__.py and CHANGELOG.md.

    python -m posref.conformance.new my_encoding --like alibi

What is not yet written raises an error that says what to write, or is marked "TO DO". The test of the operation fails while a
mark is left.
"""

import ast
import importlib.util
import inspect
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import click

import posref
from posref.spec import PARTS, REGISTRY, Encoding, OneOf

from ..errors import no_operation
from ..evidence.every.made_calls import letters
from ..evidence.index import evidence_of
from ..suite import safe_files

FACTS = ("outputs", "domains", "arrays", "result", "returns", "rows", "invariants", "requires", "sums")  # copied from the model
PLACES = ("dtype", "xp", "device")  # parameters that mean the same in every operation
PAIRS = {"q_positions", "k_positions"}
IMPORT = re.compile(r"    from (posref\.[\w.]+) import ")
DEFINITIONS = re.compile(r"(\*\*Definitions\*\* of )(\d+)")


@click.command()
@click.argument("name")
@click.option("--like", required=True, help="The operation whose family, arguments and kind of cases the new one has.")
def new(name: str, like: str) -> None:
    """Write the four files of the encoding NAME, its picture and its two lines, in a checkout. No file is overwritten."""
    root = checkout()
    if like not in REGISTRY:
        raise click.UsageError(no_operation("--like", like))
    record = REGISTRY[like]
    files = {
        Path("posref", record.family, f"{name}.py"): definition(name, record),
        Path("conformance", "witness", f"{name}.py"): witness(name, root, record),
        Path("conformance", "evidence", f"{name}.py"): evidence(name, record),
        Path("tests", "plain", f"{name}.py"): plain(name, root, record),
    }
    refuse(name, root, files)
    pictures = Path("posref", "plots", "pictures", f"{record.family}.py")
    changed = {
        Path("posref", "__init__.py"): exported(name, record.family, (root / "posref/__init__.py").read_text(encoding="utf-8")),
        Path("CHANGELOG.md"): recorded(name, (root / "CHANGELOG.md").read_text(encoding="utf-8")),
        pictures: Source(root / pictures).text + picture(name, root / pictures, record),
    }
    for file, text in files.items():
        safe_files.write(root / file, text.encode())
    for file, text in changed.items():
        safe_files.whole_file(root / file, text)
    if importlib.util.find_spec("ruff") is not None:
        ruff = [sys.executable, "-m", "ruff"]
        written = [file for file in files if file.parts[0] != "tests"]  # a plain implementation does not use its library yet
        for rule in ("F401", "I"):  # first leave out imports, then sort the others
            subprocess.run([*ruff, "check", "--quiet", "--fix", "--select", rule, *written], cwd=root, check=False)
        subprocess.run([*ruff, "format", "--quiet", *files], cwd=root, check=False)
    for file, text in files.items():
        click.echo(f"wrote {file.as_posix()}: {text.count('TO DO')} marks TO DO")
    click.echo(f"added a line to posref/__init__.py and to CHANGELOG.md, and a picture to {pictures.as_posix()}")
    click.echo("CHANGELOG.md counts one more definition")
    click.echo(f"CONTRIBUTING.md says what to write. To see what is left: pytest tests/every_encoding -k {name}")


def checkout() -> Path:
    """Return the root of the checkout in which this file is, or raise."""
    root = Path(__file__).resolve().parents[2]
    if not all((root / file).exists() for file in ("CHANGELOG.md", "posref/__init__.py", "conformance/witness", "tests/plain")):
        msg = f"new: this needs a checkout of posref, since it writes tests too; posref is installed without them in {root}."
        raise click.UsageError(msg)
    return root


def refuse(name: str, root: Path, files: Mapping[Path, str]) -> None:
    """Raise for a name that is none, or is taken, and for files that exist."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        msg = f"NAME must be a Python name in lower case, such as my_encoding; got {name!r}."
        raise click.UsageError(msg)
    where = REGISTRY[name].function.__module__ if name in REGISTRY else PARTS[name].function.__module__ if name in PARTS else ""
    if where or hasattr(posref, name):
        msg = f"NAME must be new; posref has {name} already{f', in {where}' if where else ''}."
        raise click.UsageError(msg)
    there = [path.as_posix() for file in files for path in (file, file.with_suffix("")) if (root / path).exists()]
    if there:
        msg = f"NAME must be new, and no file is overwritten; {name} already has {', '.join(there)}."
        raise click.UsageError(msg)


# ---- the definition -------------------------------------------------------------------------------------------------------
def definition(name: str, like: Encoding) -> str:
    """Return a definition with the arguments and the facts of another one."""
    source = Source(Path(inspect.getfile(inspect.unwrap(like.function))))
    function = source.function(like.function.__name__)
    decorator = next(node for node in function.decorator_list if isinstance(node, ast.Call))
    facts = {word.arg: word.value for word in decorator.keywords if word.arg in FACTS}
    written = "".join(f"    {fact}={source.of(value)},\n" for fact, value in facts.items())
    written = written.replace(', "equals its map"', "").replace('"equals its map"', "")
    return f'''"""TO DO: the encoding's name. Source: TO DO: authors, arXiv number, section."""

{source.imports}

{source.constants(*facts.values(), function.args)}


@encoding(
    title="TO DO: the field's own name of the encoding",
    idea="TO DO: the encoding in at most 60 words that a student understands.",
    family="{like.family}",
    source="TO DO: arXiv number, section",
    # TO DO: the lines below are those of {like.name}: make them true.
{written})
{source.head(function, name)}
    r"""
    Return TO DO: one sentence.

    .. math:: \\text{{TO DO: the formula}}

    TO DO: what every symbol is.

{indent(docstring(name, like), "    ")}
    """
    name = "{name}"
    msg = f"{{name}}: TO DO: write the formula, in posref/{like.family}/{name}.py"
    raise NotImplementedError(msg)
'''


def docstring(name: str, like: Encoding) -> str:
    """Return the sections of a docstring: the parameters of another operation, with notes on what to write."""
    sections = dict(re.findall(r"^(\w+)\n-+\n(.*?)(?=\n\n\w+\n---|\Z)", inspect.getdoc(like.function) or "", re.M | re.S))
    parameters = re.findall(r"^(\w[\w, ]*)( :.*)?\n((?:(?:    .*)?(?:\n|\Z))*)", sections["Parameters"], re.M)
    returns = sections["Returns"].splitlines()[0]
    text = "".join(f"{names}{kind}\n{_described(names, said, like)}\n" for names, kind, said in parameters)
    return f"""Parameters
----------
{text}
Returns
-------
{returns}
    TO DO: its unit, its dtype, and where it is added or multiplied.

Raises
------
ValueError
    TO DO: if which argument is how.

Notes
-----
TO DO: conventions, and which libraries differ.

Examples
--------
>>> {name}("TO DO: a call, and its result")
'TO DO'"""


def _described(names: str, said: str, like: Encoding) -> str:
    """Return the description of parameters: what is true of it in every operation, or what to write."""
    if names.endswith("positions") or names in PLACES:
        return said.rstrip()
    domains = (like.domains.get(name) for name in names.split(", "))
    words = next((domain.words for domain in domains if isinstance(domain, OneOf)), ())
    entries = "".join(f'\n    - ``"{word}"``: TO DO: what it means. Used by TO DO.' for word in words)
    return "    TO DO: what it is, its symbol and its unit." + (f"\n{entries}" if entries else "")


# ---- the witness and the plain implementation -----------------------------------------------------------------------------
def witness(name: str, root: Path, like: Encoding) -> str:
    """Return a second witness with the arguments of another one."""
    source = Source(root / "conformance" / "witness" / f"{like.name}.py")
    function = source.function(like.name)
    return f'''"""
TO DO: the encoding's name. Source: TO DO: authors, arXiv number, section, equation:

    TO DO: the equation as the source prints it
"""

{source.imports}

{source.constants(function.args)}


{source.head(function, name)}
    """Return TO DO: what, and its shape."""
    msg = "TO DO: transcribe the source's equation, in conformance/witness/{name}.py"
    raise NotImplementedError(msg)
'''


def plain(name: str, root: Path, like: Encoding) -> str:
    """Return a plain implementation with the arguments of another one."""
    source = Source(root / "tests" / "plain" / f"{like.name}.py")
    function = source.function(like.name)
    backend = getattr(source.assigned.get("backend"), "value", None)
    library = source.of(backend) if backend is not None else "'numpy'"
    stated = f"\nbackend = {library}\n" if backend is not None else ""
    return f'''"""As TO DO: OWNER/REPOSITORY, commit or version, computes it: TO DO: path/to/file.py, lines."""

import {ast.literal_eval(library)}
{stated}{source.constants(function.args)}

{source.head(function, name)}
    msg = "TO DO: write it as that library does, in tests/plain/{name}.py"
    raise AssertionError(msg)
'''


# ---- the evidence ---------------------------------------------------------------------------------------------------------
def evidence(name: str, like: Encoding) -> str:
    """Return cases whose arrays follow from the axes, the options of another operation, and a mistake."""
    module, prefix = evidence_of(like.name), name.replace("_", "-") + "-"
    stated = {key: getattr(module, key, None) for key in ("USUAL", "SIZES", "WAY", "AXES", "KERNEL")}
    options = "".join(
        f"{key}: Any = {_source(value)}\n" for key, value in stated.items() if _is_literal(value) and value not in (None, {})
    )
    cases = "".join(f"        {case},\n" for case in _cases(like))
    return f'''"""TO DO: the encoding's name: cases and known mistakes."""

from typing import Any

from .every.drawn_cases import drawn_cases_of
from .tools import Case, after, deviations_of

OP = __name__.rpartition(".")[2]
# TO DO: the lines below are those of {like.name}: make them true.
{options}
_case, _deviation = drawn_cases_of(OP), deviations_of(OP)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        # TO DO: two cases or more for each mistake; a model's sizes; far positions; each option at two values.
{cases}    )


def _wrong(out: Any, *args: Any, **options: Any) -> Any:
    """Return TO DO: what the mistake makes of the result."""
    msg = "TO DO: write the mistake, in conformance/evidence/{name}.py"
    raise NotImplementedError(msg)


DEVIATIONS = (
    # TO DO: the mistakes that people make, each caught by two cases or more.
    _deviation("{prefix}sign", "TO DO: what is wrong, in a sentence", after(_wrong),
               hint="TO DO: what to look at in the code."),
)
'''


def _cases(like: Encoding) -> Iterator[str]:
    """Yield the cases that an operation with the axes of another one needs at least, besides the generated ones."""
    axes, evidence = letters(like.name), evidence_of(like.name)
    options = ""
    if getattr(evidence, "USUAL", {}) is None:  # then each case says its options
        options = next((f", {_source(case.params)}" for case in evidence.cases() if _is_literal(case.params)), "")
    yield f'_case("small"{options}, tier="smoke")'
    yield f'_case("24-bits"{options}, bits=24)'
    if {"*B", "*R", "*P"} & axes:
        yield f'_case("forms/strided"{options}, form="non-contiguous", R=(2,), rows=True)'
    for letter, name in {"T": "token", "Q": "query", "K": "key"}.items():
        if letter in axes:
            yield f'_case("forms/one-{name}"{options}, {letter}=1)'
    if like.returns == "real" and any(axes.kind in ("real", "wide") for axes in like.arrays.values()):
        yield f'_case("small"{options}, kind="vjp")'
        yield f'_case("24-bits"{options}, kind="vjp", bits=24)'
    said = '"TO DO: give what is refused, and say why"'
    yield f'_case("refused/TO-DO"{options or ", {}"}, {{}}, {said}, kind="reject")'


def _is_literal(value: Any) -> bool:
    """Return whether a value is written by its `repr`, with nothing to import."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _source(value: Any) -> str:
    """Return a literal as a source has it."""
    return repr(value).replace("'", '"')


# ---- the picture and the two lines ----------------------------------------------------------------------------------------
def picture(name: str, file: Path, like: Encoding) -> str:
    """Return a picture of the same kind as another operation's, or of the kind for its positions, or one still to be drawn."""
    source, kinds = Source(file), {}
    for function in (node for node in source.tree.body if isinstance(node, ast.FunctionDef) and node.name in REGISTRY):
        decorator = function.decorator_list[0]
        if isinstance(decorator, ast.Call) and source.of(decorator.func) == "of_kind":
            kinds[function.name] = source.of(decorator), source.of(function.args)
    of_pairs = (
        op for op in kinds if {*REGISTRY[op].arrays} == PAIRS <= {*like.arrays} and REGISTRY[op].returns == like.returns
    )
    drawn_as = like.name if like.name in kinds else next(of_pairs, "")
    to_draw = f'msg = "TO DO: draw the picture, in posref/plots/pictures/{file.name}"\n    raise NotImplementedError(msg)'
    decorator_of, takes = kinds.get(drawn_as, ("picture(lambda chart: False)", "asked: Asked"))
    holds = "all((np.diff(y) < 0).all() for _, y in chart.series.values())" if '"bias"' in decorator_of else "False"
    return f'''

# TO DO: write a test of the sentence, which reads the drawn numbers.
@{decorator_of}
def {name}({takes}) -> {"bool" if drawn_as else "Chart"}:
    """TO DO: what it shows, in a sentence."""
    {f"return {holds}" if drawn_as else to_draw}
'''


def exported(name: str, family: str, text: str) -> str:
    """Return posref/__init__.py with the line of a new operation, in alphabetical order."""
    module, lines = f"posref.{family}.{name}", text.splitlines(keepends=True)
    later = (n for n, line in enumerate(lines) if (match := IMPORT.match(line)) and match[1] > module)
    lines.insert(next(later), f"    from {module} import {name} as {name}\n")
    return "".join(lines)


def recorded(name: str, text: str) -> str:
    """Return CHANGELOG.md with the line of a new operation, the first under "Added", and with one more definition."""
    text = DEFINITIONS.sub(lambda of: f"{of[1]}{int(of[2]) + 1}", text, count=1)
    return text.replace("### Added\n\n", f"### Added\n\n- `{name}`: TO DO: what it is, and who uses it.\n", 1)


# ---- sources --------------------------------------------------------------------------------------------------------------
class Source:
    """A Python file from which parts are copied, with the imports and constants that they need."""

    def __init__(self, file: Path) -> None:
        self.text = file.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.assigned: dict[str, ast.Assign | ast.AnnAssign] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = (name for target in targets for name in ast.walk(target))
                self.assigned |= {name.id: node for name in names if isinstance(name, ast.Name)}

    def of(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def function(self, name: str) -> ast.FunctionDef:
        """Return the function of a name at the top of the file."""
        return next(node for node in self.tree.body if isinstance(node, ast.FunctionDef) and node.name == name)

    def head(self, function: ast.FunctionDef, name: str) -> str:
        """Return the text of a function's head, under another name."""
        lines = self.text.splitlines()[function.lineno - 1 : function.body[0].lineno - 1]
        return "\n".join(line for line in lines if not line.lstrip().startswith("#")).replace(
            f"def {function.name}(", f"def {name}(", 1
        )

    @property
    def imports(self) -> str:
        """All imports of the file."""
        return "\n".join(ast.unparse(node) for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom))

    def constants(self, *nodes: ast.AST) -> str:
        """Return the constants that nodes need, and those that these need."""
        names = {x.id for node in nodes for x in ast.walk(node) if isinstance(x, ast.Name)}
        sources: list[str] = []
        for constant in reversed(list(dict.fromkeys(self.assigned.values()))):
            if names & {name for name, other in self.assigned.items() if other is constant}:
                names |= {x.id for x in ast.walk(constant) if isinstance(x, ast.Name)}
                sources.insert(0, self.of(constant))
        return "\n".join(sources)
