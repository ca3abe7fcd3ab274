"""Rotations that are drawn at random are read from their outputs: the sentence gives their values at every size."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.conformance import Unsupported, check_call
from posref.conformance.diagnosis.partners import SPLITS, Index, Rule, rotated
from posref.conformance.evidence.tools.deviation import Deviation
from posref.core.composition import reaches
from posref.spec import REGISTRY

SENTENCE = re.compile(r"if the rotation [a-z ]+: (channel .+), for j < (\S+), where n is the number of pairs\.")
CHANNEL = re.compile(r"channel (.+?) is (.+)")


def code(formula: str) -> str:
    """Return a formula of a sentence as Python."""
    formula = re.sub(r"(\d)([jn(])", r"\1*\2", formula.replace("mod 2n", "% (2*n)").replace("mod n", "% n"))
    formula = formula.replace("3*n/2", "3*n//2").replace("n/2", "n//2")
    return re.sub(r"\] (cos|sin)\[", r"] * \1[", formula)


def spoken(text: str, x: Any, cos: Any, sin: Any) -> Any:
    """Return the rotation that a sentence describes."""
    found = SENTENCE.search(text)
    assert found, text
    n, out = cos.shape[-1], np.full(x.shape, np.nan)
    last, x, cos, sin = code(found[2]), x.T, cos.T, sin.T
    for part in found[1].split(", and "):
        said = CHANNEL.fullmatch(part)
        assert said, part
        j, formula = code(said[1]), code(said[2])
        for number in range(eval(last, {"n": n})):
            names = {"j": number, "n": n, "x": x, "cos": cos, "sin": sin}
            out[:, eval(j, names)] = eval(formula, names)
    assert not np.isnan(out).any()
    return out


def drawn(seed: int) -> tuple[str, list[Rule]]:
    """Return rules that are drawn: partners, angles and signs."""
    rng = np.random.default_rng(seed)
    split = str(rng.choice(["all", "halves", "parity"]))
    parts = len(SPLITS[split])
    own = {"all": ["j"], "halves": [0, 1], "parity": [0, 1]}[split]
    step, rules = 4 if split == "parity" else 2, []
    for part in range(parts):
        channel = Index(step, 0, int(part)) if split == "parity" else Index(2, 2 * int(own[part] == 1), 0)
        partner = Index(int(rng.choice([2, 4, -2])), int(rng.integers(2)), int(rng.integers(-1, 2)))
        pair = Index(int(rng.choice([1, 2, -2])), 0, 0)
        pair = pair if pair.slope > 0 else pair._replace(shift=-1)
        signs = int(rng.choice([1, -1])), int(rng.choice([1, -1, 1, -1, 0]))
        rules.append(Rule(signs, (channel, partner), (pair, pair)))
    return split, rules


def made(split: str, rules: list[Rule], layout: str, dtype: Any = np.float64) -> Callable[..., Any]:
    """Return a rotation by rules, of one layout."""

    def apply_rope(x: Any, cos: Any, sin: Any, /, **options: Any) -> Any:
        if options.pop("layout") != layout or any(value not in (False, "leading") for value in options.values()):
            raise Unsupported
        rotating = 2 * cos.shape[-1]
        out = rotated(*(np.asarray(a, dtype=np.float64) for a in (x[..., :rotating], cos, sin)), split, rules)
        return np.concatenate([out, np.broadcast_to(x[..., rotating:], (*out.shape[:-1], x.shape[-1] - rotating))], -1).astype(
            x.dtype
        )

    return apply_rope


@few(2, "seed", range(40))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_drawn_rotation_is_read(seed: int, dtype: str) -> None:
    split, rules = drawn(seed)
    layout = ("half", "interleaved")[seed % 2]
    found = check_call(made(split, rules, layout), op="apply_rope", experiments=0, dtype=dtype).operations[0].diagnosis
    assert found is not None
    if found["names"]:  # the draw is a known mistake
        return
    rng = np.random.default_rng(seed)
    for n in (2, 4, 6, 10, 32):
        x, cos, sin = rng.standard_normal((3, 2 * n)), *rng.standard_normal((2, 3, n))
        np.testing.assert_allclose(spoken(found["text"], x, cos, sin), rotated(x, cos, sin, split, rules), atol=1e-12)


@pytest.mark.thorough
@few(
    1,
    "op",
    sorted(
        op for op in REGISTRY if "apply_rope" in reaches(op) and REGISTRY[op].returns == "real" and "x" in REGISTRY[op].arrays
    ),
)
def test_a_rotation_inside_another_operation_is_read(op: str) -> None:
    split, rules = "halves", [
        Rule((1, 1), (Index(2, 0, 0), Index(4, 0, 1)), (Index(2, 0, 0), Index(2, 0, 0))),
        Rule((1, -1), (Index(2, 2, 0), Index(4, 0, 0)), (Index(2, 0, 0), Index(2, 0, 0))),
    ]  # fmt: skip
    concatenated = Deviation("", "", {"apply_rope": lambda _: made(split, rules, "half")}).operations()[op]
    report = check_call(concatenated, op=op, experiments=0, dtype="float64")
    if not any(case.verdict == "fail" for case in report.failures):  # it is asked in no case that this one answers
        return
    found = report.operations[0].diagnosis
    assert found is not None
    rng = np.random.default_rng(1)
    x, cos, sin = rng.standard_normal((3, 24)), *rng.standard_normal((2, 3, 12))
    np.testing.assert_allclose(spoken(found["text"], x, cos, sin), rotated(x, cos, sin, split, rules), atol=1e-12)


@pytest.mark.thorough(dear=True)
def test_noise_is_not_read() -> None:
    def apply_rope(x: Any, cos: Any, sin: Any, /, *, layout: str, inverse: bool = False, lanes: str = "leading") -> Any:
        right = posref.apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
        return right + np.abs(x).sum(axis=-1, keepdims=True) / 7

    found = check_call(apply_rope, op="apply_rope", experiments=0).operations[0].diagnosis
    assert "o known mistake gives these values." in found["text"]


@pytest.mark.thorough
def test_a_rotation_without_a_formula_is_told_by_its_channels() -> None:
    def apply_rope(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
        if layout != "interleaved" or 2 * cos.shape[-1] != x.shape[-1]:
            raise Unsupported(layout)
        cos, sin = (np.concatenate([t, t[..., ::-1]], -1) for t in (cos, sin))
        return x * cos + np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape) * sin

    found = check_call(apply_rope, op="apply_rope", experiments=0, dtype="float32").operations[0].diagnosis
    assert "channel 1 is x[1] cos[1] + x[0] sin[1], not x[1] cos[0] + x[0] sin[0]" in str((found or {})["text"])
