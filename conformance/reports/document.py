"""What the JSON of a report comes to, wherever it was read."""

import json
import math
from collections.abc import Mapping
from typing import Any

from ..model import BAD


def state(document: Mapping[str, Any]) -> str:
    """Return what the JSON of a report comes to: conformant, not conformant, or incomplete if any part of it is missing."""
    found = {"operations": len(document["operations"]), "cases": len(document["cases"])}
    if not document["complete"] or document["totals"] != found:
        return "incomplete"
    holds = document["conformant"] and all(op["conformant"] for op in document["operations"])
    return "conformant" if holds else "not conformant"


def ordered(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's JSON with keys in the order of the file, so that what is made of it depends on content alone."""
    found: dict[str, Any] = json.loads(json.dumps(document, sort_keys=True))
    return found


def standing(conformant: bool, counts: Mapping[str, int]) -> str:
    """Return pass, fail, or partial: nothing failed, but too little was supported to speak of the operation."""
    return "pass" if conformant else "fail" if any(counts.get(verdict) for verdict in BAD) else "partial"


def nearest(case: Mapping[str, Any]) -> float:
    """Return the position of the worst value of a case in a report's JSON, so that the nearest failure comes first."""
    position = (case["worst"] or {}).get("position")
    return math.inf if position is None else float(position)
