"""
The two witnesses agree on calls drawn at random, of every operation: the definition on balls, and the literal transcription.

`python tests/thorough/test_witnesses.py 200` draws 200 calls of each.
"""

import sys
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from sampling import share

from posref.backends.exact import Unproved
from posref.conformance.fuzzing.hunt import written
from posref.conformance.fuzzing.strategies import calls
from posref.conformance.model import Call
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import disagreement
from posref.spec import REGISTRY

DRAWS = 10


def compared(op: str, draws: int) -> tuple[Counter[str], list[str]]:
    """Return how many drawn calls were compared or could not be, and where the witnesses disagree."""
    counts: Counter[str] = Counter()
    problems: list[str] = []

    @seed(sum(map(ord, op)))
    @settings(
        max_examples=draws, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(calls(op, "float64"))
    def draw(drawn: Call) -> None:
        try:
            found = golden(op, drawn.inputs, drawn.params)
        except Unproved:  # on a boundary of rounding, as the mean of three may be
            counts["not proved"] += 1
            return
        if not all(value.size for value in (*found.values(), *drawn.inputs.values())):  # lists without elements have no shape
            counts["empty"] += 1
            return
        counts["compared"] += 1
        problem = disagreement(op, drawn.inputs, drawn.params, found, {})
        if problem is not None:
            problems.append(f"{written(op, drawn)}: {problem}")

    draw()
    return counts, problems


@pytest.mark.parametrize("op", share(REGISTRY))
def test_the_witnesses_agree_on_calls_at_random(op: str) -> None:
    counts, problems = compared(op, DRAWS)
    assert not problems, problems[0]
    assert counts["compared"]


def main(draws: int) -> None:
    """Draw calls of every operation, and print what was found of each."""
    total: Counter[str] = Counter()
    for op in REGISTRY:
        begun = time.perf_counter()
        counts, problems = compared(op, draws)
        total += counts + Counter({"disagreements": len(problems)})
        print(f"{op}: {dict(counts)}, {len(problems)} disagree, {time.perf_counter() - begun:.1f} s", flush=True)
        for problem in problems[:3]:
            print(f"  {problem[:2000]}", flush=True)
    print(dict(total))


if __name__ == "__main__":
    main(int(sys.argv[1]))
