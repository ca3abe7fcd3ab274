"""An operation in words, for people: its title, its idea, and what the words of its options mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Word:
    """One word of an option: what it means, in one sentence, and the models and libraries known to use it."""

    meaning: str
    users: tuple[str, ...] = ()


Words = Mapping[str, Word]


@dataclass(frozen=True)
class About:
    """The field's own name of an operation, its idea in at most 60 words, and its options' words, by option and word."""

    title: str
    idea: str
    words: Mapping[str, Words] = field(default_factory=dict)


def used_by(words: Words, /, **users: tuple[str, ...]) -> dict[str, Word]:
    """Return the same words and meanings with these users, and no others."""
    unknown = sorted(set(users) - set(words))
    if unknown:
        msg = f"used_by: users must be among {', '.join(words)}; got {', '.join(unknown)}."
        raise ValueError(msg)
    return {name: Word(word.meaning, users.get(name, ())) for name, word in words.items()}
