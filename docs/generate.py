"""
Write every generated page: arguments, mistakes, diagnosis, scoreboard, the vectors' table of operations and list of
mistakes, and what commands print in the README and the guides.

    python docs/generate.py              # all but the diagnosis; which cases catch which mistake, where cases have changed
    python docs/generate.py --measure    # the diagnosis too, and which cases catch any mistake: ten minutes or more
    python docs/generate.py --check      # exit code 1 if a page is out of date; the diagnosis is not measured
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from posref.conformance.comparison import table as comparison
from posref.conformance.diagnosis import strength
from posref.conformance.evidence.catalogue import mistakes
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation
from posref.conformance.suite import load_manifest, writer
from posref.core.composition import reaches
from posref.spec import REGISTRY

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "docs" / "site")]

import argument_table  # noqa: E402
import operation_table  # noqa: E402
import scoreboard  # noqa: E402
from trackers import references  # noqa: E402

VECTORS, SCOREBOARD = ROOT / "conformance" / "vectors" / "README.md", ROOT / "docs" / "scoreboard.md"
ARGUMENTS = ROOT / "docs" / "guides" / "arguments.md"
PAGE, DIAGNOSIS = ROOT / "docs" / "deviations.md", ROOT / "docs" / "diagnosis.md"
SHOWING = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]  # pages that show what commands print
FLAGS = VECTORS.with_name("flags.json")
CAUGHT = ROOT / "conformance" / "evidence" / "caught.json"
OUTPUT = re.compile(r"(<!-- output of: posref (.*?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)
FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```\n", re.DOTALL)
HEAD = """\
# Mistakes that posref knows

posref knows {count} mistakes. Each is a named change that makes the reference wrong. When an operation fails, `posref check`
tries them as explanations, one at a time and two at once. If none fits, the report calls the failure unexplained. The
mistakes also measure the suite: each must fail at least two cases (`posref vectors strength`). [diagnosis.md](diagnosis.md)
shows how often the names are right.

"Seen in" names an issue, pull request or commit where such a bug was found. `python docs/generate.py` writes this page from
`posref.conformance.evidence.deviations`.
"""

QUALITY = """\
# Diagnosis: how it works, and how good it is

`posref check` explains a failing operation with the first of these that fits:

1. **One known mistake** of the [registry](deviations.md). It must reproduce your values in every failing case, and the expected
   values in every passing case. If several do, the report names all: no case of the check distinguishes them.
2. **One number**: an option that always has the same value, or a fixed relation to the right one; a field of a scaling; a
   gain; an offset or a scale of positions, or the position at which they wrap or stop. It must explain at least two failing
   cases. A number that changes positions must also explain several positions.
3. **One changed expression** of the definition: another operator, a function left out, one name in place of another. The text
   has both expressions, and the hint has the file and line of the definition.
4. **Two or three mistakes**, each in its own cases, and without effect on the cases of the others.
5. **Two mistakes at once**, in the same cases. If stages (operations that this one calls) failed too, posref tries the
   mistakes of these stages first. One of them may be a number.
6. **Groups** of failing cases that share an option or a form of input. posref explains each group separately, and the report
   lists its cases. If cases are left over, and no group has half of the failing cases, the groups are only a remark: the text
   begins with "unexplained (n of m failing cases)", and has no name and no hint.
7. Otherwise no known mistake gives the values, and the text says so at its end. Before, it says what failing cases share and
   passing cases lack ("exactly the cases with an input that is not contiguous fail"), and where values are wrong ("only the
   last token is wrong"). If it can say neither, the failure is **unexplained**.

If exactly the failing cases share a trait, and one known mistake gives their values, the text says both first: "exactly the
cases with one token fail. In these your output matches ...". If no mistake explains all answers of a target that runs in a
process of its own, posref makes the smallest failing call once more, as the first call of a new process. If it passes there,
the text begins with "failures depend on the calls before", and has no other name.

In a large call posref tries mistakes on few rows. It names a mistake only if all judged rows agree. A mistake may give all
wrong values, but not the right ones. The text then says: "only heads from 24 on are wrong. There your output matches ...".

posref never names two mistakes together that contradict each other. It names the first wrong stage first, unless the
operation that calls this stage has another diagnosis. If failing cases are right at positions nearer to 0, the text says where
failures begin ("first failure at position 2049"). If that is a position that a dtype cannot hold (257, 2049), and all positions
that it can hold are right, it says that too. If only the gradients of a rotation fail, posref explains them as a rotation too.

posref computes a mistake in float64, and compares it with your values, which have other roundings. Four constants say
how close they must be (`JITTER`, `UNITS`, `SAMPLES`, `HOPELESS` in `conformance/diagnosis/hypotheses.py`). They are chosen, not
derived. They cannot make a case pass or fail: the stored tolerances judged all cases before. They only decide the name of a
failure. If they are too small, the failure stays unexplained. If they are too large, two mistakes tie.

A report does limited work for diagnoses, for all operations together: about 6 seconds of CPU. It counts computed values, not
seconds, so a slow or busy machine gives the same report. If the work does not suffice, the text says that posref did not try
every mistake. If many operations fail, the last ones stay unexplained: check them alone, with `--op`.

## Measured

The implementations are in `tests/defects`: code in float32, written by hand, that does not import posref. Nearly all have
a defect that the registry lacks, or two registered mistakes at once. Tests also check the reference, and the code as people
write it (`tests/plain`), with each registered mistake.

"Named" means that the names are exactly the defects, or give the same values in every case. "Partly named" means that the names
are some of the defects, and nothing else. "Told" means that there is no name, but posref gives a number that explains the
failure, the cases that fail, or the places that are wrong. "Outside" counts the told and unexplained defects that are not in
the registry, so that no name would be right.

| defects | found | named | partly named | told | unexplained | of the last two, outside | wrong |
|---|---|---|---|---|---|---|---|
{totals}

Definitions with one registered mistake each are counted separately.
{registry}

`python docs/generate.py --measure` measures all this and writes this page.

| function | what is wrong | verdict | called |
|---|---|---|---|
{table}
"""


UNNAMED = ("told", "unexplained")


def operations(deviation: Deviation) -> list[str]:
    """Return the operations that a mistake changes directly; an unnamed part counts as its whole."""
    names: dict[str, None] = {}
    for name in deviation.wraps:
        names |= dict.fromkeys([name] if name in REGISTRY else [op for op in REGISTRY if name in reaches(op)])
    return sorted(names, key=list(REGISTRY).index)


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    for mark in "\\|*_<[":
        text = text.replace(mark, f"\\{mark}")
    return text


def linked(seen_in: str) -> str:
    """Return where something was seen, for a cell of a Markdown table, with links to issues."""
    text, at = "", 0
    for written, address in references(seen_in):
        start = seen_in.index(written, at)
        text += f"{cell(seen_in[at:start])}[{cell(written)}]({address})"
        at = start + len(written)
    return text + cell(seen_in[at:])


def deviations() -> str:
    """Return the page of mistakes, by the operations that they change."""
    sections: dict[str, list[Deviation]] = {}
    for deviation in DEVIATIONS.values():
        sections.setdefault(", ".join(operations(deviation)), []).append(deviation)
    order = list(REGISTRY)
    lines = [HEAD.format(count=len(DEVIATIONS))]
    for title in sorted(sections, key=lambda t: [order.index(op) for op in t.split(", ")]):
        lines += [f"## {title}\n", "| name | what it does | look at | seen in |", "|---|---|---|---|"]
        lines += [f"| `{d.name}` | {cell(d.text)} | {cell(d.hint)} | {linked(d.seen_in)} |" for d in sections[title]]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def diagnosis(registry: str | None = None) -> str:
    """Return the page of the diagnosis, with its quality measured anew, in minutes; `registry` is what it says of mutants."""
    sys.path[:0] = [str(ROOT / "tests")]
    import quality

    registry = quality.registry() if registry is None else registry

    rows = [quality.row(defect) for defect in quality.DEFECTS]
    total, outside = quality.totals(rows), sum(not row.planted and row.verdict in UNNAMED for row in rows)
    numbers = [*(total[k] for k in ("defects", "found", "named", "partly named", *UNNAMED)), outside, total["wrong"]]
    table = [f"| `{row.name}` | {cell(row.defect)} | {_verdict(row)} | {_called(row)} |" for row in rows]
    return QUALITY.format(totals=f"| {' | '.join(map(str, numbers))} |", registry=registry, table="\n".join(table))


def _verdict(row: Any) -> str:
    return f"{row.verdict} (outside)" if row.verdict in UNNAMED and not row.planted else str(row.verdict)


def _called(row: Any) -> str:
    """Return the names for a defect: ties in the order of the registry, mistakes at once joined by a plus."""
    order = list(DEVIATIONS)
    said = [sorted(names, key=order.index) for ties in row.called.values() for names in ties]
    return " or ".join(dict.fromkeys(" + ".join(f"`{name}`" for name in names) for names in said))


def run(command: str, text: str) -> str:
    """Return what a posref command prints where the examples and the files shown in `text` are."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "examples", Path(scratch, "examples"))
        for name, content in FILE.findall(text):
            Path(scratch, name).write_text(content, encoding="utf-8")
        seed = ["--seed", "1"] if command.startswith("check") else []
        call = [sys.executable, "-P", "-m", "posref", *command.split(), *seed]
        done = subprocess.run(call, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(done.stderr)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def shown(text: str) -> str:
    """Return a page with every output block as it is now."""
    return OUTPUT.sub(lambda block: block[1] + run(block[2], text) + block[4], text)


def pages(*, measured: bool) -> dict[Path, str]:
    """Return every generated page as it is now; what takes minutes to measure only if `measured`."""
    record = strength.record(known=None if measured else json.loads(CAUGHT.read_bytes()))
    generated = {
        PAGE: deviations(),
        ARGUMENTS: argument_table.page(),
        CAUGHT: record,
        FLAGS: writer.json_bytes(mistakes(json.loads(record))).decode(),
        VECTORS: operation_table.renewed(VECTORS.read_text(encoding="utf-8")),
        comparison.COMPUTED: comparison.computed(),
        SCOREBOARD: scoreboard.page(*scoreboard.load()),
        **{path: shown(path.read_text(encoding="utf-8")) for path in SHOWING if path != ARGUMENTS},
    }
    return generated | ({DIAGNOSIS: diagnosis()} if measured else {})


def seal(suite: Path) -> None:
    """Write the hashes of a suite whose page, or list of mistakes, has changed."""
    writer.write_manifest(suite, load_manifest(suite)["groups"])


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--measure"], ["--check"]):
        sys.exit("usage: python docs/generate.py [--measure | --check]")
    check = sys.argv[1:] == ["--check"]
    now = pages(measured=sys.argv[1:] == ["--measure"])
    stale = [path for path, text in now.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            path.write_text(now[path], encoding="utf-8", newline="\n")
        print(f"{'would change' if check else 'wrote'} {path.relative_to(ROOT)}")
    if {VECTORS, FLAGS} & {*stale} and not check:
        seal(VECTORS.parent)
    sys.exit(1 if check and stale else 0)
