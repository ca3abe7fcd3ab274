"""The index of the box on the page of symptoms: BM25 over the words of its entries, computed when the site is built."""

import json
import math
import re
from collections import Counter
from pathlib import Path

from symptoms import Symptom, symptoms

TITLES = Path(__file__).with_name("threads.json")  # titles of cited threads, as far as they are known
JOINT = r"(?<=[a-z]{3})(?=[A-Z]{2}|[A-Z][a-z])|(?<=[A-Z]{3})(?=[A-Z][a-z])"  # DynamicNTKScaling is three words, RoPE is one
ENDING = r"(?<=[a-z]{3})(?:ations?|ings?|ions?|edly|ed|es|s|e|al|ally|able|ly|ments?|ers?|y)$"
DOUBLE = r"([b-df-hj-np-rtv-z])\1$"  # padd of padding, embedd of embedding
SAME = {"rotary": "rop", "hf": "huggingfac", "pos": "position", "pe": "position", "posit": "position", "dimens": "dim"}
SAME |= {"encod": "embed", "emb": "embed", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
SMALL = r"^(?:an?|the|i|my|you|its?|to|is|are|be|do|does|did|in|of|on|at|as|by|and|or|than|when|with|for|from)$"
SMALL += r"|^(?:this|that|which|why|what|how|use|used|using)$"  # words that every title may have
FIELDS = {"title": 3, "also": 2, "cause": 1, "fix": 1, "threads": 1, "mistakes": 1, "group": 2}  # how much a word counts there
ASKED = 2  # and in the title of a cited thread
RISE, LENGTH = 1.2, 0.5  # BM25's k1 and b


def stems(text: str) -> list[str]:
    """Return the stems of a text. The script of the page does the same with the words of a reader."""
    words = [word for word in re.findall("[a-z0-9]+", re.sub(JOINT, " ", text).lower()) if not re.match(SMALL, word)]
    ends = (SAME.get(word, re.sub(DOUBLE, r"\1", re.sub(ENDING, "", word))) for word in words)
    return [SAME.get(end, end) for end in ends]


def index() -> dict[str, dict[int, int]]:
    """Return what each stem adds to the score of each entry, in hundredths, by the entry's number on the page."""
    titles = json.loads(TITLES.read_text(encoding="utf-8"))
    counts = [_counts(symptom, titles) for symptom in symptoms()]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / len(lengths)
    weights: dict[str, dict[int, int]] = {}
    for stem in sorted(set().union(*counts)):
        within = {number: count[stem] for number, count in enumerate(counts) if stem in count}
        rare = math.log(1 + (len(counts) - len(within) + 0.5) / (len(within) + 0.5))
        weights[stem] = {
            number: round(100 * rare * times * (RISE + 1) / (times + RISE * (1 - LENGTH + LENGTH * lengths[number] / mean)))
            for number, times in within.items()
        }
    return weights


def ranked(text: str, weights: dict[str, dict[int, int]]) -> list[int]:
    """Return the numbers of the entries that have a word of a text, best first."""
    scores: Counter[int] = Counter()
    for known in {known for stem in stems(text) for known in _near(stem, weights)}:
        scores.update(weights[known])
    return sorted(scores, key=lambda number: (-scores[number], number))


def script() -> str:
    """Return the index as a script, which a page can load from a file too: the weights, and how a word becomes a stem."""
    rules = {"joint": JOINT, "ending": ENDING, "double": DOUBLE, "same": SAME, "small": SMALL, "weights": index()}
    return f"const symptomIndex = {json.dumps(rules, separators=(',', ':'))};\n"


def _near(stem: str, weights: dict[str, dict[int, int]]) -> list[str]:
    """Return a stem that the index has; of an unknown one, those that begin with it, since a reader may still be typing."""
    return [stem] if stem in weights else [known for known in weights if len(stem) > 2 and known.startswith(stem)]


def _counts(symptom: Symptom, titles: dict[str, str]) -> Counter[str]:
    count: Counter[str] = Counter()
    for field, times in FIELDS.items():
        value = getattr(symptom, field)
        for stem in stems(value if isinstance(value, str) else " ".join(value)):
            count[stem] += times
    for stem in stems(" ".join(titles.get(thread, "") for thread in symptom.threads)):
        count[stem] += ASKED
    return count
