"""
Every operation in words: its title and idea, and what each word of its options means and who uses it.

Titles and ideas stand in `@encoding`, words in the docstring, as a list at the end of the option's description::

    form : {"distance", "key"}
        What the bias of a key is.

        - ``"distance"``: The bias is minus the slope times the distance.
        - ``"key"``: The bias is the slope times the key's position. Used by BLOOM, MPT.

An entry is a sentence or more, then the users, if any are known: "Used by A, B." or, if a user has a comma, "Used by A; B, C."
Instead of users in the entries, the description may say "`alibi` names the users." Then they are the users of the option of
the same name in `alibi`; with "`form` of `alibi` names the users." they are the users of its option `form`.
"""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import posref  # noqa: F401  (registers the definitions)
from posref.spec import FAMILIES as ORDER
from posref.spec import REGISTRY, Encoding, OneOf

__all__ = ["ABOUT", "FAMILIES", "About", "Word", "Words", "described", "without_words"]

SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=\n\n\w[^\n]*\n---|\Z)", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"^(\w+(?:, \w+)*)(?: :.*)?\n((?:(?:    .*)?(?:\n|\Z))*)", re.MULTILINE)
ENTRY = re.compile(r'^    - ``"(.+?)"``: (.*(?:\n      .*)*)', re.MULTILINE)
LISTS = re.compile(r'\n*(?:\n    - ``".+?"``: .*(?:\n      .*)*)+')
TEXT = re.compile(r"([A-Z].*?\.)(?: Used by (.+)\.)?")
USERS = re.compile(r"(?:`(\w+)` of )?`(\w+)` names the users\.")


@dataclass(frozen=True)
class Word:
    """One word of an option: what it means, the models and libraries said to use it, and where the code of each was read."""

    meaning: str
    users: tuple[str, ...] = ()
    read: tuple[str, ...] = ()  # as many as users, "" where nobody has read the code

    @property
    def told(self) -> str:
        """The users in words; those whose code nobody has read are marked."""
        return ", ".join(user if place else f"{user} (not verified)" for user, place in zip(self.users, self.read, strict=True))


Words = Mapping[str, Word]


@dataclass(frozen=True)
class About:
    """The field's own name of an operation, its idea in at most 60 words, and its options' words, by option and word."""

    title: str
    idea: str
    words: Mapping[str, Words] = field(default_factory=dict)


class Texts(Mapping[str, About]):
    """The texts of all operations, or of one family. Texts are read at first use."""

    def __init__(self, family: str | None = None) -> None:
        self.family = family

    def __getitem__(self, op: str) -> About:
        record = REGISTRY[op]
        if not self._has(record):
            raise KeyError(op)
        return About(record.title, record.idea, {option: _words(record, option) for option in _options(record)})

    def __iter__(self) -> Iterator[str]:
        return (op for op, record in REGISTRY.items() if self._has(record))

    def __len__(self) -> int:
        return sum(map(self._has, REGISTRY.values()))

    def _has(self, record: Encoding) -> bool:
        """Return whether these texts have the operation: one without a title has no text."""
        return bool(record.title) and self.family in (None, record.family)


@dataclass(frozen=True)
class Family:
    """One family of operations."""

    ABOUT: Mapping[str, About]


ABOUT: Mapping[str, About] = Texts()
FAMILIES = {family: Family(Texts(family)) for family in ORDER}


def without_words(docstring: str) -> str:
    """Return a docstring, as `inspect.getdoc` gives it, without the lists of words: for pages that show them elsewhere."""
    return SECTION.sub(lambda section: LISTS.sub("", section[0]), docstring)


def _options(record: Encoding) -> list[str]:
    """Return the options that are one of a few words; none under ``python -OO``, which has no docstrings."""
    return [option for option, domain in record.domains.items() if isinstance(domain, OneOf) and sys.flags.optimize < 2]


def _words(record: Encoding, option: str) -> dict[str, Word]:
    """Return the words of an option in the registry's order, or raise `ValueError` with the file and line of the definition."""
    text, domain = described(record).get(option, ""), record.domains[option]
    entries = ENTRY.findall(text)
    result = {name: _word(record, option, name, " ".join(said.split())) for name, said in entries}
    reference = USERS.search(" ".join(text.split()))
    known = domain.words if isinstance(domain, OneOf) else ()
    if [name for name, _ in entries] != list(known):
        lack = " and ".join(f'- ``"{name}"``: ...' for name in known if name not in result)
        need = f"lacks {lack}" if lack else f"must have {', '.join(known)}, each once and in this order"
        msg = f"{_where(record)}: the list under {option} in the docstring {need}"
        raise ValueError(msg)
    if reference is None:
        return result
    other, op = reference[1] or option, reference[2]
    users = _words(REGISTRY[op], other) if op in REGISTRY and other in _options(REGISTRY[op]) else {}
    if not set(result) <= set(users) or any(word.users for word in result.values()):
        msg = (
            f'{_where(record)}: {option} says "{reference[0]}", so its entries must have no users, and `{op}` must have an '
            f"option {other} with all of its words."
        )
        raise ValueError(msg)
    return {name: Word(word.meaning, users[name].users, users[name].read) for name, word in result.items()}


def _word(record: Encoding, option: str, name: str, text: str) -> Word:
    parts = TEXT.fullmatch(text)
    users = re.split("; " if parts and ";" in (parts[2] or "") else ", ", parts[2]) if parts and parts[2] else []
    if parts is None or "Used by" in parts[1] or any(". " in user for user in users):
        msg = (
            f'{_where(record)}: {option}="{name}" must be explained in whole sentences, and only the last may say '
            f'"Used by A, B."; got {text!r}.'
        )
        raise ValueError(msg)
    return Word(parts[1], tuple(users), tuple(record.read.get(user, "") for user in users))


def described(record: Encoding) -> dict[str, str]:
    """Return the description of every parameter, as the docstring has it."""
    section = SECTION.search(inspect.getdoc(record.function) or "")
    parameters = PARAMETER.findall(section[1]) if section else []
    return {name: text for names, text in parameters for name in names.split(", ")}


def _where(record: Encoding) -> str:
    code = inspect.unwrap(record.function).__code__
    return f"{code.co_filename}, line {code.co_firstlineno}: {record.name}"
