"""Every operation is told in words: a title, an idea, and the meaning of each word that its options take."""

import re

import pytest
from click.testing import CliRunner

from posref.about import ABOUT, Word
from posref.about.record import used_by
from posref.cli import cli
from posref.spec import REGISTRY, OneOf

WORDS = [
    (op, option, word)
    for op, record in REGISTRY.items()
    for option, domain in record.domains.items()
    if isinstance(domain, OneOf)
    for word in domain.words
]


def test_nothing_is_told_that_is_not_there() -> None:
    told = [(op, option, word) for op, about in ABOUT.items() for option, words in about.words.items() for word in words]
    assert sorted(told) == sorted(WORDS)


def test_titles_are_unique() -> None:
    titles = [about.title.lower() for about in ABOUT.values()]
    assert sorted(titles) == sorted(set(titles))


def test_a_user_of_an_unknown_word_is_told() -> None:
    with pytest.raises(ValueError, match="users must be among half; got full"):
        used_by({"half": Word("Half of it.")}, full=("nobody",))


@pytest.mark.parametrize("columns", [60, 80])
def test_show_prints_title_idea_and_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = CliRunner().invoke(cli, ["show", "rope"], prog_name="posref").output
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
    found = CliRunner().invoke(cli, [], prog_name="posref")
    assert found.exit_code == 0
    assert len(found.output.splitlines()) <= 24
    for command in re.findall(r"^  posref (.+)$", found.output, re.MULTILINE):
        name, *rest = command.split()
        assert name in cli.commands
        assert not rest or CliRunner().invoke(cli, [name, "--help"], prog_name="posref").exit_code == 0
    assert found.output.count("\n  posref ") == 3
