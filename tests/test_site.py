"""The site: every operation has its page, and its pages say what they must."""

import importlib
import inspect
import json
import math
import re
import shlex
import sys
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sampling import few, share

import posref
from posref.about import ABOUT
from posref.cli import cli
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.core.composition import stages
from posref.spec import REGISTRY

ROW = re.compile(r"^\| (\S+) \| \S+ \| (\S+) \|$", re.MULTILINE)
SITE = Path(__file__).resolve().parents[1] / "docs" / "site"


def pages() -> ModuleType:
    if str(SITE) not in sys.path:
        sys.path.append(str(SITE))  # for its own modules
    return importlib.import_module("pages")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the site, with its pictures not drawn."""
    folder = tmp_path_factory.mktemp("site") / "source"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(pages(), "_pictures", lambda folder: None)
        pages().write(folder)
    return folder


@pytest.mark.thorough
def test_every_operation_has_a_page(source: Path) -> None:
    listed = (source / "guides" / "operations.md").read_text(encoding="utf-8")
    for op in REGISTRY:
        assert f"\n[`{op}`](../encodings/{op}.md) (" in listed
        text = (source / "encodings" / f"{op}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {ABOUT[op].title}\n\n{ABOUT[op].idea}\n")
        assert f".. autofunction:: posref.{op}" in text
        assert f"posref check TARGET --op {op}" in text
        for words in ABOUT[op].words.values():
            assert all(said.meaning in text for said in words.values())
    assert set(re.findall(r":link: encodings/(\w+)", (source / "gallery.md").read_text(encoding="utf-8"))) == set(REGISTRY)


@pytest.mark.thorough
def test_every_model_has_a_page(source: Path) -> None:
    from posref.presets import presets

    pages = {page: page.read_text(encoding="utf-8") for page in (source / "models").glob("*.md")}
    code = [block for text in pages.values() for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    for name in presets:
        assert any(re.search(rf"^## (.*, )?{re.escape(name)}(,|$)", text, re.MULTILINE) for text in pages.values()), name
    assert len(code) > 50
    for block in code:
        found: dict[str, object] = {}
        exec(block, found)
        assert getattr(found["q"], "shape", ())[2] == 10


@few(1, "library", ["NumPy", "PyTorch"])
def test_the_calls_on_the_pages_run(library: str) -> None:
    for op in REGISTRY:
        run_call(op, library)


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_the_call_on_a_page_runs_on_jax(op: str) -> None:
    run_call(op, "JAX")


def run_call(op: str, library: str) -> None:
    """Run the code on an operation's page: its result has the shape that is told, and is of the library."""
    pages()
    import snippets

    lines = snippets.code(op, library)
    assert max(map(len, lines)) <= 60, op
    found: dict[str, object] = {}
    exec("\n".join(lines), found)
    result = found[REGISTRY[op].outputs[0]]
    assert tuple(getattr(result, "shape", ())) == snippets.shape(op), op
    assert type(result).__module__.split(".")[0] in {"NumPy": "numpy", "PyTorch": "torch", "JAX": "jaxlib"}[library], op


@pytest.mark.thorough
def test_pages_tell_the_bounds_and_cases_of_the_stored_vectors(source: Path) -> None:
    from posref.conformance.suite.reader import INSTALLED, load_manifest

    groups = load_manifest(INSTALLED)["groups"]
    for op in REGISTRY:
        text = (source / "encodings" / f"{op}.md").read_text(encoding="utf-8")
        number = sum(len(group["cases"]) for group in groups if group["op"] == op)
        assert f"\n{number} cases check this operation: " in text
    rope = (source / "encodings" / "rope.md").read_text(encoding="utf-8")
    bounds = {name: float(largest) for name, largest in ROW.findall(rope.partition("## Tolerance as")[0])[1:]}
    assert bounds["float64"] < bounds["angle64"] < bounds["angle32"] < bounds["low-float16"]


@pytest.mark.thorough
def test_every_known_encoding_has_operations_or_a_reason_why_it_has_none(source: Path) -> None:
    import choose

    text = (source / "choose.md").read_text(encoding="utf-8").split("## Not defined here, and why")[1]
    rows = choose.inventory()
    assert len({row["encoding"] for row in rows}) == len(rows) >= 102
    for row in rows:
        named = row.get("operations", [])
        assert [op for op in named if op not in REGISTRY and not callable(attrgetter(op)(posref))] == []
        why = row.get("lacks") if named else row["reason"]
        assert (f"\n{row['encoding']}\n: " in text) == bool(why)
        assert not why or (str(why)[1:] in text and row["found_in"] in text)


@pytest.mark.thorough
def test_an_encoding_is_chosen_by_need_or_by_facts(source: Path) -> None:
    import choose

    from posref.conformance.comparison.table import rows

    text = (source / "choose.md").read_text(encoding="utf-8")
    table = text.split("## All encodings")[1].split("\n## ")[0]
    assert [row["name"] for row in rows()] == re.findall(r"^\| \[[^]]+\]\(encodings/(\w+)\.md\)", table, re.MULTILINE)
    assert "d_fine" in choose.missing()["deformable attention"]
    types = (source / "models" / "types.md").read_text(encoding="utf-8")
    assert "`bloom`\n: text [Attention with linear biases (ALiBi)](../encodings/alibi.md)\n" in types
    assert all(f"\n`{name}`\n: " in types for name in ("llama", "bert", "t5", "vit", "clip"))  # parts of others too


SAYS = {  # what a page has, and what it has not
    "variants": (("## HARoPE", "See [", "(encodings/cumulative_rope.md)"), ()),
    "index": (("posref.rope_from_config(config)", "(positions-float16)"), ("\n{",)),
    "guides/extension": (("[`rope_frequencies`](../encodings/rope_frequencies.md)",), ()),
    "encodings/mrope": (("(../guides/multimodal.md)", "(../guides/cache.md)"), ()),
    "encodings/learned": (("Results must be exact in every class.",), ()),
    "encodings/rope": (("\n- positions-float16 (", "(../notebooks/rope.md)"), ()),
    "encodings/rotary_linear_attention": (("(../notebooks/rope.md)",), ()),
    "encodings/rerope_distances": (("(../notebooks/rope.md)",), ()),
    "proved": ((f"`{math.sin(0.03)!r}`",), ("{",)),  # what is worked through there is true
}


@pytest.mark.thorough
@pytest.mark.parametrize("page", SAYS)
def test_a_page_says_what_it_must(source: Path, page: str) -> None:
    text = (source / f"{page}.md").read_text(encoding="utf-8")
    has, lacks = SAYS[page]
    assert [words for words in has if words not in text] == []
    assert [words for words in lacks if words in f"\n{text}"] == []


def test_a_lesson_shows_which_additions_depend_on_the_offset_alone() -> None:
    pages()
    import lessons

    constant = {
        name: all(np.allclose(np.diff(np.diag(values, offset)), 0) for offset in range(-11, 12))
        for name, values in lessons.additions().items()
    }
    assert [name for name, alone in constant.items() if alone] == ["T5", "ALiBi", "KERPLE"]
    assert set(constant) == {"sinusoids", "Shaw", "Transformer-XL", "T5", "ALiBi", "KERPLE"}
    assert lessons.chart().values.shape == (25, 38)


@pytest.mark.thorough
def test_the_notebooks_are_pages_with_what_they_print(source: Path) -> None:
    for name, printed in (("sinusoids", "times 22.6: a word is 22.7 long"), ("rope", "24 of 528 need both")):
        text = (source / "notebooks" / f"{name}.md").read_text(encoding="utf-8")
        assert printed in text
        assert f"examples/{name}.ipynb" in text
        pictures = re.findall(r"\(\.\./pictures/([\w-]+)\.svg\)", text)
        pages()
        import notebooks

        own = {found for found, _ in notebooks.charts(name)}
        assert own == {picture for picture in pictures if picture not in REGISTRY} != set()
        assert set(pictures) - own == {"sinusoids": {"sinusoidal"}, "rope": {"rotation_matrix"}}[name]


def test_pictures_and_pages_are_made_smaller_without_a_change() -> None:
    pages()
    import slim

    assert slim._drawn("M 1.04 2 L 3.06 2 Q 4 5 6.02 7 Z M 2 2 L 9 9", 10, unit=10) == 'd="m1 2l2.1 0q.9 3 2.9 5zm1 0l7 7"'
    assert slim._drawn("M 8 16 A 1 1 0 0 0 2 2", 10, unit=10) == 'd="M 8 16 A 1 1 0 0 0 2 2"'  # an arc is left alone
    light = '<svg><style>a{}</style><path id="m1" style="fill: #ffffff; stroke: #0072b2"/><use xlink:href="#m1"/></svg>'
    merged = slim.picture(light, light.replace("#ffffff", "#131416").replace("m1", "m2"))
    assert ":root{--0:#ffffff;}@media(prefers-color-scheme:dark){:root{--0:#131416;}}" in merged
    assert '<path id="a0" style="fill:var(--0);stroke:#0072b2"/><use href="#a0"/>' in merged
    letters = slim.picture(
        *(f'<svg><style></style><g id="{name}_1">a</g><g id="patch_1">b</g></svg>' for name in ("text",) * 2)
    )
    assert letters == "<svg><style>:root{}@media(prefers-color-scheme:dark){:root{}}" + slim.SMALL + (
        '</style><g class="t">a</g><g>b</g></svg>'
    )
    with pytest.raises(ValueError, match="differ by colours only"):
        slim.picture(light, light.replace("</svg>", "<g/></svg>"))
    glyph = '<symbol id="m7"><path d="m0 0"/></symbol><use href="#m7"/>'
    assert slim.once(glyph + glyph) == glyph + '<use href="#m7"/>'
    formula = '<svg viewBox="0 -1.5 3 2"><symbol id="m7" viewBox="0 -1.5 0.6 2"><path d="M 0.22 0 L 1 1"/></symbol></svg>'
    assert slim.formula(formula) == formula.replace("0 -1.5 0.6 2", "0 -150 60 200").replace("M 0.22 0 L 1 1", "m22 0l78 100")
    assert slim.without_unused_icons(f'{glyph}<symbol id="m8"></symbol>') == glyph
    assert slim.once('<p><a class="reference external" href="x">x</a></p>') == '<p><a href="x">x</a></p>'
    named = '<code class="docutils literal"><span class="pre">a-b</span> <span class="pre">c_d</span></code>'
    short = '<code class="literal"><span class="pre">a-b</span> c_d</code>'  # a line may break after a hyphen
    assert slim.once(f'<a href="x"><span class="std std-ref">{named}</span></a>') == f'<a href="x">{short}</a>'
    assert slim.once('<tr class="row-odd"><td></td></tr>') == "<tr><td></td></tr>"
    assert slim.unindented("<p>\n  a\n</p> <pre>\n  b\n</pre>\n\n  <p>") == "<p>\na\n</p> <pre>\n  b\n</pre>\n<p>"


@pytest.mark.thorough
def test_symptoms_name_what_exists(source: Path) -> None:
    """Every entry has a command that runs, mistakes that the check knows, pages that are there, and a thread."""
    import symptoms

    found = symptoms.symptoms()
    anchors = symptoms.anchors()
    titles = [symptom.title for symptom in found]
    assert len(found) >= 130
    assert len(set(titles)) == len(titles)
    for symptom in found:
        ops, model = _asked(symptom.check) if symptom.check else ((), None)
        assert set(ops) <= set(REGISTRY), symptom.title
        assert bool(symptom.unseen) == (not ops and not model), f"{symptom.title}: a check, or why there is none"
        assert not (symptom.unseen and symptom.mistakes), symptom.title
        assert symptom.threads, symptom.title
        assert all(symptoms.address(thread).startswith("https://github.com/") for thread in symptom.threads)
        for mistake in symptom.mistakes:
            owners = set(anchors[mistake].split("-"))  # the operations in the heading of its section
            called = {name for op in ops for name in (op, *stages(op))}
            assert owners & called or not ops, f"{symptom.title}: {mistake} is of {owners}, not of {ops}"
        assert all((source / f"{name}.md").exists() for name in symptom.see), symptom.title
        linked = re.findall(r"\]\(#([\w-]+)\)", symptom.cause + symptom.fix + symptom.target)
        assert set(linked) <= set(map(symptoms.slug, titles)), symptom.title
    text = (source / "symptoms.md").read_text(encoding="utf-8")
    assert all(f"\n### {title}\n" in text for title in titles)


def test_the_box_ranks_the_right_entry_among_the_first_three() -> None:
    """The titles are of threads that the site does not cite. No entry is edited to fit them."""
    pages()
    import ranking
    import symptoms

    entries, weights = symptoms.symptoms(), ranking.index()
    cited = {thread for entry in entries for thread in entry.threads}
    rows = json.loads(Path(__file__).with_name("symptom_titles.json").read_text(encoding="utf-8"))
    assert len({row["thread"] for row in rows} - cited) == len(rows) >= 40
    assert {name for row in rows for name in row["entries"]} <= {entry.title for entry in entries}
    first = [{entries[number].title for number in ranking.ranked(row["title"], weights)[:3]} for row in rows]
    right = [bool(shown & set(row["entries"])) for shown, row in zip(first, rows, strict=True)]
    assert sum(right) >= 0.75 * len(rows), [row["title"] for row, well in zip(rows, right, strict=True) if not well]
    titles = json.loads(ranking.TITLES.read_text(encoding="utf-8"))
    assert set(titles) <= cited


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("PositionalEncoding fails", ["position", "embed", "fail"]),
        ("RoPE, rotary_emb: padding", ["rop", "rop", "embed", "pad"]),
        ("batches of batched batch", ["batch", "batch", "batch"]),
        ("LlamaDynamicNTKScaling", ["llama", "dynamic", "ntk", "scal"]),
        ("", []),
    ],
)
def test_words_of_one_idea_have_one_stem(text: str, stems: list[str]) -> None:
    pages()
    import ranking

    assert ranking.stems(text) == stems


def _asked(check: str) -> tuple[tuple[str, ...], str | None]:
    """Return the operations and the model that a command asks for."""
    words = shlex.split(check)
    assert words[:3] == ["posref", "check", "TARGET"], check
    options = cli.commands["check"].make_context("check", words[2:]).params
    return options.get("op", ()), options.get("model")


NORMS = {"path_logits"}  # a chain is bounded by norms, of which the rules of single numbers say nothing


@pytest.mark.thorough
def test_the_printed_rules_give_the_stored_tolerances(source: Path) -> None:
    """Computed from the formulas on a page, as a reader would, a tolerance is the stored one within a fifth, in each class."""
    import rules

    compared = 0
    for op in REGISTRY:
        found = rules.first(op)
        text = (source / "encodings" / f"{op}.md").read_text(encoding="utf-8")
        assert ("## Tolerance as a rule" in text) == (found is not None), op
        if found is None:
            continue
        formulas = rules.printed(text)
        assert set(formulas) == {line.name for line in found.derivation.shown}, op
        for name, width in found.stored.items():
            given = rules.bound(found.derivation, formulas, name)
            assert (width == 0) == (given == 0), (op, name)
            least = 1 / 4 if op in NORMS else 5 / 6
            assert width == 0 or least <= given / width <= 6 / 5, (op, name, given, width)
            compared += 1
        halved = {name: (p, f"({i}) / 2") for name, (p, i) in formulas.items()}  # what every step introduces counts
        assert op in NORMS or rules.bound(found.derivation, halved, "angle32") < 0.8 * found.stored["angle32"], op
    assert compared > 300
    exact = {op for op in REGISTRY if rules.first(op) is None}
    assert {"learned", "t5_buckets", "permute_qk_weights"} <= exact
    assert not {"rope", "alibi", "attention", "liere"} & exact


@pytest.mark.thorough
def test_a_symptom_leads_to_its_mistakes_and_findings_in_two_clicks_and_they_lead_back(source: Path) -> None:
    import mistakes
    import symptoms

    first, page = ((source / f"{name}.md").read_text(encoding="utf-8") for name in ("deviations", "symptoms"))
    places = mistakes.places()
    assert set(places) == set(DEVIATIONS)
    for symptom in symptoms.symptoms():
        back = f"](../symptoms.md#{symptoms.slug(symptom.title)})"
        for name in symptom.mistakes:
            file, anchor = places[name].split("#")
            assert f"[`{name}`]({file}#{anchor})" in page
            text = (source / file).read_text(encoding="utf-8")
            section = next(part for part in text.split("\n## ") if symptoms.slug(part.partition("\n")[0]) == anchor)
            assert back in next(line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
            assert f'<span id="{anchor}"></span>' in first  # where older links lead
        for name in symptom.see:
            assert not name.startswith("findings/") or back in (source / f"{name}.md").read_text(encoding="utf-8")
    findings = sorted((source / "findings").glob("[!i]*.md"))
    assert len(findings) > 20
    assert all(f"](findings/{finding.name})" in page for finding in findings)


@pytest.mark.thorough(dear=True)
def test_every_displayed_formula_is_drawn() -> None:
    pages()
    import formulas

    assert formulas.parts(r"a &= b && \text{one} \\ c &= d, \qquad e") == [r"a = b \quad  \text{one}", "c = d", " e"]
    drawn = 0
    for op, record in REGISTRY.items():
        text = inspect.cleandoc(record.function.__doc__ or "")
        for formula in re.findall(r"^\.\. math::(.*?)(?=\n\S|\Z)", text, re.DOTALL | re.MULTILINE):
            for part in formulas.parts(formula):
                assert formulas.svg(part, "block").startswith("<svg "), (op, part)
                drawn += 1
    assert drawn > 100
