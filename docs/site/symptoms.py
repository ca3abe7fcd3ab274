"""The page of symptoms: what people write in trackers, with the cause, the check that shows it, and the fix."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import mistakes

DATA = Path(__file__).with_suffix(".json")
BOX = """<form id="symptom-box" autocomplete="off" hidden>
  <label for="symptom-words">Words of your error message, or of what you see</label>
  <input id="symptom-words" type="search"> <output id="symptom-count" for="symptom-words" aria-live="polite"></output>
  <ol id="symptom-results" aria-live="polite"></ol>
</form>"""
SCRIPTS = "".join(f'<script src="_static/{name}.js"></script>' for name in ("symptom-index", "symptoms"))
DEVIATIONS = Path(__file__).parents[1] / "deviations.md"


@dataclass(frozen=True)
class Symptom:
    """
    An entry of the page.

    `also` are other words for it, `mistakes` the mistakes that `posref check` would name. `target` says what TARGET must be,
    where that is not plain. Where no check shows it, `check` is empty and `unseen` says why.
    """

    group: str
    title: str
    also: list[str]
    cause: str
    check: str
    fix: str
    threads: list[str]
    mistakes: list[str]
    see: list[str]
    unseen: str = ""
    target: str = ""


def symptoms() -> list[Symptom]:
    """Return all entries, in the order of the page."""
    return [Symptom(**entry) for entry in json.loads(DATA.read_text(encoding="utf-8"))]


def page(titles: dict[str, str]) -> str:
    """Return the page. `titles` has the title of each page that an entry links to."""
    entries, sections = symptoms(), mistakes.places()
    lines = [
        *("---", "tocdepth: 2", "---"),  # the list beside the page has its groups; with all entries it is long
        "# Symptoms",
        "",
        f"{len(entries)} things that people write in trackers, and what was wrong. Type an error message or what",
    ]
    lines += ["you see: the entries are ranked by its words. `TARGET` is your code: see [check](guides/check.md).", ""]
    lines += ["```{raw} html", BOX, "```", ""]
    for group in dict.fromkeys(symptom.group for symptom in entries):
        lines += [f"## {group}", ""]
        for symptom in (symptom for symptom in entries if symptom.group == group):
            lines += _entry(symptom, titles, sections)
    lines += ["## In one library", "", "Confirmed defects of released versions, each with a fix and a test:", ""]
    defects = {name: title for name, title in titles.items() if name.startswith("findings/") and name != "findings/index"}
    lines += [f"- [{title}]({name}.md)" for name, title in sorted(defects.items())]
    lines += ["", "```{raw} html", SCRIPTS, "```"]
    return "\n".join([*lines, ""])


def of_mistakes() -> dict[str, list[Symptom]]:
    """Return the symptoms of each mistake."""
    result: dict[str, list[Symptom]] = {}
    for symptom in symptoms():
        for name in symptom.mistakes:
            result.setdefault(name, []).append(symptom)
    return result


def slug(title: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")


def _entry(symptom: Symptom, titles: dict[str, str], sections: dict[str, str]) -> list[str]:
    names = ", ".join(f"[`{name}`]({sections[name]})" for name in symptom.mistakes)
    threads = ", ".join(f"[{thread.partition('/')[2]}]({address(thread)})" for thread in symptom.threads)
    more = ", ".join(f"[{titles[name]}]({name}.md)" for name in symptom.see)
    lines = [f"### {symptom.title}", ""]
    lines += [f"*Also: {'; '.join(symptom.also)}.*", ""] if symptom.also else []
    check = (
        f"`{symptom.check}`"
        + (f" names {names}." if names else ". It names no mistake for this.")
        + (f" {symptom.target}" if symptom.target else "")
    )
    lines += [f"**Cause.** {symptom.cause}", "", f"**Check.** {check if symptom.check else f'None: {symptom.unseen}'}", ""]
    lines += [f"**Fix.** {symptom.fix}", "", f"Reported in {threads}." + (f" More: {more}." if more else ""), ""]
    return lines


def anchors() -> dict[str, str]:
    """Return the anchor of the section on the page of mistakes that has each mistake."""
    result: dict[str, str] = {}
    section = ""
    for line in DEVIATIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = slug(line[3:])
        elif name := re.match(r"\| `([\w.-]+)` \|", line):
            result[name[1]] = section
    return result


def address(thread: str) -> str:
    """Return the address of a thread, written as owner/repository#number."""
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)#(\d+)", thread)
    if match is None:
        raise ValueError(f"symptoms: a thread must be owner/repository#number; got {thread!r}.")
    return f"https://github.com/{match[1]}/issues/{match[2]}"
