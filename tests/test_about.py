"""Every operation is told in words: a title, an idea, and the meaning of each word that its options take."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from commands import run

from posref.about import ABOUT, Word, without_words
from posref.cli import cli
from posref.spec import REGISTRY, Axes, OneOf, encoding


def test_nothing_is_told_that_is_not_there() -> None:
    told = [(op, option, word) for op, about in ABOUT.items() for option, words in about.words.items() for word in words]
    options = [(op, *option) for op, record in REGISTRY.items() for option in record.domains.items()]
    words = [(op, option, word) for op, option, domain in options if isinstance(domain, OneOf) for word in domain.words]
    assert sorted(told) == sorted(words)


def test_titles_are_unique() -> None:
    titles = [about.title.lower() for about in ABOUT.values()]
    assert sorted(titles) == sorted(set(titles))


PLACE = re.compile(  # where a claim was read: a release or a commit with files and lines, or an equation of a paper
    r"([\w-]+ \d[\w.]*|[\w.-]+/[\w.-]+@[0-9a-f]{7,}), [\w./-]+\.\w+:\d+(-\d+)?(, \d+(-\d+)?)*"
    r"(; (transformers [\d.]+, )?[\w./-]+\.\w+:\d+(-\d+)?(, \d+(-\d+)?)*)*|arXiv:\d+\.\d+, (equation|section) [(\d.)]+"
)


def test_a_claim_names_file_and_line() -> None:
    """The one who is named must be named in the docstring too, or nobody would look the place up."""
    for op, record in REGISTRY.items():
        docstring = " ".join((inspect.getdoc(record.function) or "").split()) + str(record.models)
        for user, place in record.read.items():
            assert PLACE.fullmatch(place), f"{op}: {user} needs a version or commit, a file and lines; got {place!r}"
            assert user in docstring, f"{op} says nothing of {user}"


def test_every_user_of_a_word_has_a_place() -> None:
    """One whose code cannot be read is not a user: the docstring's prose may name it, and say so."""
    words = [(op, word) for op, about in ABOUT.items() for words in about.words.values() for word in words.values()]
    claims = [(op, user, place) for op, word in words for user, place in zip(word.users, word.read, strict=True)]
    assert not [f"{op}: {user}" for op, user, place in claims if not place]
    assert len(claims) > 200


LIBRARIES = (  # that docstrings say something of: a new one is added here
    "axlearn", "bert4keras", "Boltz", "DGL", "diffusers", "ESPnet", "fairseq", "fastllm", "flash-attn", "FlashAttention",
    "guided-diffusion", "keras-hub", "Medusa", "Megatron-core", "MLX", "MONAI", "NeMo", "open_clip", "OpenFold",
    "performer-pytorch", "PyTorch Geometric", "ring-flash-attention", "rotary-embedding-torch", "SGLang", "tensor2tensor",
    "TensorRT-LLM", "timm", "torchscale", "vit-pytorch", "vLLM", "x-transformers",
)  # fmt: skip


def test_a_library_that_a_docstring_names_has_a_place() -> None:
    """Prose claims as much as a list of users does, and is believed as much."""
    prose = {op: " ".join((inspect.getdoc(record.function) or "").split()) for op, record in REGISTRY.items()}
    for library in LIBRARIES:
        named = re.compile(rf"(?<![\w-]){re.escape(library)}(?![\w-])")
        claimed = [op for op, text in prose.items() if named.search(text)]
        assert claimed, f"no docstring names {library}: remove it here"
        assert not [(library, op) for op in claimed if library not in " ".join(REGISTRY[op].read)]


def test_a_model_that_an_operation_names_has_a_place() -> None:
    """Of this operation or another: RoPE's models have theirs where layouts are told."""
    placed = " ".join(user for record in REGISTRY.values() for user in record.read)
    models = {model for record in REGISTRY.values() for model in record.models}
    unplaced = {model for model in models if not re.search(rf"(?<![\w-]){re.escape(model)}(?!\w|\.\d| \d)", placed)}
    assert unplaced == {"PRoPE"}, "add read=... to @encoding"  # PRoPE's code was read, its lines were not counted


def test_a_user_without_a_place_is_shown_as_not_verified(written: Callable[..., str]) -> None:
    op = written()
    assert ABOUT[op].words["form"]["half"].told == "Ann (not verified), Bea, Eve and Zoe (not verified)"
    assert "Ann (not verified)" in " ".join(run("show", op).output.split())


HALF = """
    Return half of it.

    Parameters
    ----------
    x : array
        Any array.
    form, other : {{"half", "full"}}
        How much. {reference}

        {entries}

    Returns
    -------
    array
        Half of it.

        - ``"third"``: Not an option's word.
"""
GOOD = """- ``"half"``: The first half. It
          is kept. Used by Ann; Bea, Eve and Zoe.
        - ``"full"``: All of it. Used by Ann, Bea."""


@pytest.fixture
def written() -> Iterator[Callable[..., str]]:
    """A function that registers an operation with this list of words, and returns the operation's name."""

    def write(entries: str = GOOD, reference: str = "", name: str = "half_done") -> str:
        def half_done(x: Any, /, *, form: str, other: str) -> Any:
            return x

        half_done.__doc__ = HALF.format(entries=entries, reference=reference)
        words = {"form": OneOf(("half", "full")), "other": OneOf(("half", "full"))}
        described: dict[str, Any] = {"arrays": {"x": Axes("*P")}, "domains": words, "result": "=x", "source": "nobody"}
        encoding(title="Half", idea="Half of it.", family="bias", name=name, **described)(half_done)
        return name

    before = dict(REGISTRY)
    yield write
    REGISTRY.clear()
    REGISTRY.update(before)


def test_words_are_read_from_the_docstring(written: Callable[..., str]) -> None:
    words = {
        "half": Word("The first half. It is kept.", ("Ann", "Bea, Eve and Zoe"), ("", "")),
        "full": Word("All of it.", ("Ann", "Bea"), ("", "")),
    }
    op = written()
    assert ABOUT[op].words == {"form": words, "other": words}
    shown = without_words(inspect.getdoc(REGISTRY[op].function) or "")
    assert "is kept" not in shown
    assert "Used by" not in shown
    assert shown.index("How much.") < shown.index("Returns\n") < shown.index('- ``"third"``')
    assert run("show", op).output.count("The first half. It is kept.") == 2


def test_users_may_be_those_of_another_operation(written: Callable[..., str]) -> None:
    entries = '- ``"half"``: The first half.\n        - ``"full"``: All of it.'
    op = written(entries, "`form` of `alibi_half` names the\n        users. Not more.")
    with pytest.raises(ValueError, match="`alibi_half` must have an option form with all of its words"):
        ABOUT[op]
    written(name="alibi_half")
    assert ABOUT[op].words["other"]["half"] == Word("The first half.", ("Ann", "Bea, Eve and Zoe"), ("", ""))
    written(entries, "`alibi_half` names the users.", name=op)
    assert ABOUT[op].words["other"]["full"] == Word("All of it.", ("Ann", "Bea"), ("", ""))
    written(GOOD, "`alibi_half` names the users.", name=op)
    with pytest.raises(ValueError, match="its entries must have no users"):
        ABOUT[op]


FULL = '\n        - ``"full"``: All of it.'


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ('- ``"half"``: The first half.', r'the list under form in the docstring lacks - ``"full"``: ...'),
        ("Nothing.", r'lacks - ``"half"``: ... and - ``"full"``: ...'),
        ('- "half": The first half.' + FULL, r'lacks - ``"half"``: ...'),
        ('- ``"half"``: The first half.' + FULL + FULL, "must have half, full, each once and in this order"),
        ('- ``"third"``: A third.\n        - ``"half"``: The first half.' + FULL, "must have half, full, each once"),
        ('- ``"half"``: The first half' + FULL, 'form="half" must be explained in whole sentences'),
        ('- ``"half"``: the first half.' + FULL, "in whole sentences"),
        ('- ``"half"``: Used by Ann.' + FULL, "in whole sentences"),
        ('- ``"half"``: The first half. Used by Ann. It is kept.' + FULL, "only the last may say"),
        ('- ``"half"``: The first half, Used by Ann.' + FULL, "only the last may say"),
    ],
)
def test_a_list_that_lacks_something_is_told_with_file_and_line(written: Callable[..., str], entries: str, told: str) -> None:
    op = written(entries)
    with pytest.raises(ValueError, match=re.escape(told)) as caught:
        ABOUT[op]
    line = inspect.unwrap(REGISTRY[op].function).__code__.co_firstlineno
    assert f"test_about.py, line {line}: half_done: " in str(caught.value)


def test_an_operation_without_a_title_has_no_text(written: Callable[..., str]) -> None:
    number = len(ABOUT)

    @encoding(family="bias", source="nobody", result="*P", domains={"form": OneOf(("half", "full"))})
    def untitled(*, form: str) -> Any:
        return form

    assert "untitled" not in ABOUT
    assert len(ABOUT) == number == len(list(ABOUT))
    assert run("show", "untitled").exit_code == 0


def test_import_reads_no_docstring() -> None:
    code = "import sys, posref; sys.exit('posref.about' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("columns", [60, 80])
def test_show_prints_title_idea_and_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run("show", "rope").output
    lines = shown.splitlines()
    at = lines.index("Rotary position embedding (RoPE)")
    idea = lines[at + 1 : lines.index("", at)]
    assert " ".join(idea) == ABOUT["rope"].idea
    assert max(map(len, idea)) <= columns
    words = lines[next(n for n, line in enumerate(lines) if line.startswith("Option layout: ")) :]
    assert words[1].startswith("  half: Pair i is channels i and i + d/2")
    assert "Used by GPT-NeoX" in " ".join(line.strip() for line in words)
    assert max(len(line) for line in words if line.startswith("  ")) <= columns


def test_posref_alone_says_what_one_does_with_it() -> None:
    found = run()
    assert found.exit_code == 0
    assert len(found.output.splitlines()) <= 24
    for command in re.findall(r"^  posref (.+)$", found.output, re.MULTILINE):
        name, *rest = command.split()
        assert name in cli.commands
        assert not rest or run(name, "--help").exit_code == 0
    assert found.output.count("\n  posref ") == 3
