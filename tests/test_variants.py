"""The page of named variants: every line equals its equation, written here without posref."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from commands import run

from posref.conformance.comparison.variants import CODE, PAGE, named, variants

SETUP = CODE.search(PAGE.read_text(encoding="utf-8"))[1]  # type: ignore[index]
FREQUENCIES = 1e4 ** (-np.arange(4) / 4)
P = np.arange(6.0)
AXES: dict[str, list[int]] = {"videorope": [1, 2, 0, 0], "m-rope-i": [0, 1, 2, 0]}
Names = dict[str, Any]


def source(code: str) -> str:
    """Return the statements of an example, without prompts and results."""
    return "\n".join(line[4:] for line in code.splitlines() if line[:4] in (">>> ", "... "))


def names_of(variant: str) -> Names:
    """Return what the names of a variant's example are bound to after it ran, the shared ones among them."""
    row = next(row for row in variants() if row["variant"] == variant)
    names: Names = {}
    exec(source(SETUP) + "\n" + source(str(row["code"])), names)
    return names


def turned(x: Any, angles: Any, *, interleaved: bool = False) -> Any:
    """Return x with its pairs, as complex numbers, rotated by angles."""
    half = x.shape[-1] // 2
    pairs = x[..., ::2] + 1j * x[..., 1::2] if interleaved else x[..., :half] + 1j * x[..., half:]
    pairs = pairs * np.exp(1j * angles)
    parts = (pairs.real, pairs.imag)
    return np.stack(parts, axis=-1).reshape(x.shape) if interleaved else np.concatenate(parts, axis=-1)


def expm(a: Any) -> Any:
    """Return the exponential of matrices as a power series, of a halved argument that is squared again."""
    small, total = a / 2**10, np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    term = total
    for n in range(1, 16):
        term = term @ small / n
        total = total + term
    for _ in range(10):
        total = total @ total
    return total


def softplus(x: Any) -> Any:
    return np.log1p(np.exp(x))


def allocated(name: str) -> Callable[[Names], Any]:
    """Return the rotation whose pairs have these axes."""
    return lambda n: turned(n["q"], n["grid"][AXES[name]].T * FREQUENCIES)


def roformer_plus(n: Names) -> Any:
    q, k = (x[..., :4] + 1j * x[..., 4:] for x in (n["q"], n["k"]))
    phase = np.exp(1j * (P[:, None] - P)[..., None] * FREQUENCIES)
    logits = np.sum(q[:, :, None] * np.conj(k[:, None]) * phase, axis=-1)
    return np.stack([logits.real, logits.imag])


def clipped(n: Names) -> Any:
    rates = [5e5 ** (-2 * i / 128) * (1 if i < 44 else 0.5 + 0.5 * np.cos(np.pi * (i - 44) / 19)) for i in range(64)]
    return turned(n["waves"](6, 128, start=1.0), P[:, None] * np.asarray(rates))


def context_aware(n: Names) -> Any:
    gate = 1 / (softplus(n["waves"](4, 6, start=3.0)) + 1)
    powers = np.stack([np.cumsum(gate**i, axis=1) for i in range(1, 5)], axis=-1)
    return turned(n["q"], powers)


def clamped(n: Names) -> Any:
    """Timm: h at 1, 4, 7, ... up to 3 * 12, and w at 2, 5, ..., as far as there are pairs."""
    axes = np.zeros(32, dtype=int)
    axes[1 : 3 * 12 : 3], axes[2 : 3 * 12 : 3] = 1, 2
    return turned(n["waves"](6, 64, start=1.0), n["grid"][axes].T * 1e4 ** (-np.arange(32) / 32))


def by_channels(n: Names) -> Any:
    """The first of two halves has four channels of time, then two of height and two of width three times; twice in all."""
    axes = [0] * 4 + [1, 1, 2, 2] * 3
    return turned(n["waves"](6, 64, start=1.0), n["grid"][axes * 2].T * 1e4 ** (-np.arange(32) / 32))


def without_time(n: Names) -> Any:
    return turned(n["q"], (n["grid"] * [[0], [1], [1]])[AXES["videorope"]].T * FREQUENCIES)


def on_circle(n: Names) -> Any:
    """All four cells of a row have the angles 0 (right of the centre) or pi, stretched to 0 and 2 pi."""
    phi = 0.5 * np.asarray([1, 1, 0, 0]) * 2 * np.pi + 0.5 * np.arange(4) * np.pi / 2
    u, v = np.asarray([-1, 1, 0]) / 2**0.5, np.asarray([-1, -1, 2]) / 6**0.5  # x, y, z
    cells = 10 * (u[:, None] * np.cos(phi) + v[:, None] * np.sin(phi))[::-1]
    return turned(n["q"][:, :4], cells[[0, 0, 1, 2]].T * FREQUENCIES)


def learned_change(n: Names) -> Any:
    """(M q)^T R(n - m) M^-T k, summed for each pair of tokens."""
    m = np.eye(8) + 0.1 * n["waves"](4, 8, 8, start=1.0)
    found = np.empty((4, 6, 6))
    for head in range(4):
        for i in range(6):
            for j in range(6):
                k = np.linalg.solve(m[head].T, n["k"][head, j])
                found[head, i, j] = (m[head] @ n["q"][head, i]) @ turned(k, (j - i) * FREQUENCIES, interleaved=True)
    return found


def augmented(n: Names) -> Any:
    """Two axes of 4 channels: each has frequencies 1 and 1/10 of a full turn, pairs are channels i and i + 4."""
    y, x = np.meshgrid([-0.5, 0.5], [-2 / 3, 0, 2 / 3], indexing="ij")
    rows, columns = (y.ravel() + 0.1) * 1.1 * 1.3, (x.ravel() - 0.2) * 0.9 * 1.3
    rates = 2 * np.pi * np.asarray([1, 0.1])
    return turned(n["q"], np.concatenate([rows[:, None] * rates, columns[:, None] * rates], axis=-1))


def plane(n: Names) -> Any:
    a, b = n["waves"](8, start=1.0), n["waves"](8, start=2.5)
    lie = np.outer(a, b) - np.outer(b, a)
    sigma = np.sqrt((a @ a) * (b @ b) - (a @ b) ** 2)
    turns = [
        np.eye(8) + np.sin(0.3 * t * sigma) / sigma * lie + (1 - np.cos(0.3 * t * sigma)) / sigma**2 * lie @ lie for t in P
    ]
    return np.einsum("tij,htj->hti", np.asarray(turns), n["q"])


def contextual(n: Names) -> Any:
    step = 1 / (1 + np.exp(-n["waves"](6, start=1.0) / 16))
    return turned(n["q"], -(np.cumsum(step) - step)[:, None] * FREQUENCIES)


def by_both(n: Names) -> Any:
    u = n["waves"](4, 8, start=4.0)
    u = u / np.sqrt(np.sum(u * u, axis=1))[:, None]
    key, query = (softplus(np.einsum("htd,hd->ht", x, u) / np.sqrt(8)) for x in (n["k"], n["q"]))
    slopes = 2.0 ** (-2.0 * np.arange(1, 5))
    return -slopes[:, None, None] * (P[:, None] - P) * (key[:, None, :] + query[:, :, None])


def by_path(n: Names) -> Any:
    x = n["x"]
    hat = turned(x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 2**-23), -P[:, None])
    steps = np.log(1 / (1 + np.exp(-np.einsum("hid,hld->hil", x, hat) / 8)))
    found = np.zeros((4, 6, 6))
    for i in range(6):
        for j in range(i):
            found[:, i, j] = 4.0 ** -np.arange(1, 5) * steps[:, i, j + 1 : i + 1].sum(axis=-1)
    return found


def commuting(n: Names) -> Any:
    block = n["waves"](1, 2, 4, 4, start=1.0)[0]
    skew = block - np.swapaxes(block, 1, 2)
    amount = n["grid"].T @ np.asarray([[0.5, 0.2], [-0.3, 0.6], [0.8, -0.4]])  # (tokens, blocks)
    matrices = expm(amount[:, :, None, None] * skew)
    return np.einsum("tgij,htgj->htgi", matrices, n["q"].reshape(4, 6, 2, 4)).reshape(4, 6, 8)


def selective(n: Names) -> Any:
    return turned(n["q"], np.cumsum(n["waves"](4, 6, 4, start=1.0), axis=1) * 5e5 ** (-np.arange(4) / 4))


def projected(n: Names) -> Any:
    """The projectors as products of all other factors: they need no eigenvectors."""
    roots = n["graph"].sum(axis=1) ** -0.5
    matrix = np.eye(5) - roots[:, None] * n["graph"] * roots
    values = np.sort(np.real(np.roots(np.poly(matrix))))
    return np.stack([
        np.linalg.multi_dot([(matrix - other * np.eye(5)) / (value - other) for other in values if other != value])
        for value in values[:2]
    ])  # fmt: skip


def logits(n: Names) -> Any:
    return np.stack([n["real"] @ n["key"].mT, n["imaginary"] @ n["key"].mT])


EQUATIONS: dict[str, tuple[Callable[[Names], Any], Callable[[Names], Any]]] = {  # what the line gives, and the equation
    "RoPE++": (logits, roformer_plus),
    "Clipped RoPE (CoPE)": (lambda n: n["rotated"], clipped),
    "CARoPE": (lambda n: n["rotated"], context_aware),
    "MHRoPE": (
        lambda n: n["rotated"],
        lambda n: np.stack([turned(n["q"][h], n["grid"][a][:, None] * FREQUENCIES) for h, a in enumerate((0, 1, 2, 2))]),
    ),
    "M-RoPE-I": (lambda n: n["rotated"], allocated("m-rope-i")),
    "Clamped M-RoPE (GenLIP)": (lambda n: n["rotated"], clamped),
    "VideoRoPE": (lambda n: n["rotated"], allocated("videorope")),
    "HoPE (of vision-language models)": (lambda n: n["rotated"], without_time),
    "MM-RoPE": (lambda n: n["rotated"], by_channels),
    "V2PE": (lambda n: n["rotated"], lambda n: turned(n["q"], np.asarray([0, 1, 1.25, 1.5, 1.75, 3])[:, None] * FREQUENCIES)),
    "Circle-RoPE": (lambda n: n["rotated"], on_circle),
    "HARoPE": (lambda n: n["query"] @ n["key"].mT, learned_change),
    "p-RoPE": (lambda n: n["rotated"], lambda n: turned(n["q"], P[:, None] * FREQUENCIES * [1, 1, 0, 0])),
    "Augmented positions of DINOv3": (lambda n: n["rotated"], augmented),
    "GRAPE-M": (lambda n: n["rotated"], plane),
    "GRAPE-M, as trained": (lambda n: n["rotated"], lambda n: turned(n["q"], -P[:, None] * np.exp(n["waves"](4, start=1.0)))),
    "GRAPE-M, contextual": (lambda n: n["rotated"], contextual),
    "GRAPE-A": (lambda n: n["distances"] * (n["by_key"][:, None, :] + n["by_query"][:, :, None]), by_both),
    "GRAPE-AP": (lambda n: n["posref"].row_forgetting_bias(n["log_gates"], counted="query"), by_path),
    "ComRoPE": (lambda n: n["rotated"], commuting),
    "Resonance RoPE": (
        lambda n: n["rotated"],
        lambda n: turned(n["q"], P[:, None] * [2 * np.pi / round(2 * np.pi / f) for f in FREQUENCIES]),
    ),
    "Pixel and constant frequencies": (
        lambda n: n["rotated"],
        lambda n: turned(
            n["q"], np.outer([-1, -0.6, -0.2, 0.2, 0.6, 1], np.pi * np.asarray([1, 7 / 3, 11 / 3, 5])), interleaved=True
        ),
    ),
    "SSMax": (
        lambda n: n["logits"],
        lambda n: np.einsum("hmd,hnd,m,h->hmn", n["q"], n["k"], np.log(P + 1), [0.4, 0.5, 0.6, 0.7]) / 8**0.5,
    ),
    "Selective RoPE": (lambda n: n["rotated"], selective),
    "Laplacian eigenvectors": (lambda n: n["projectors"], projected),
}


@pytest.mark.parametrize("variant", EQUATIONS)
def test_a_line_is_its_equation(variant: str) -> None:
    line, equation = EQUATIONS[variant]
    names = names_of(variant)
    found, expected = line(names), equation(names)
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected)) < 1e-12
    assert np.max(np.abs(expected - np.roll(expected, 1, axis=-1))) > 0.01  # not what any other numbers give


def test_a_layer_without_rotation_has_no_entry() -> None:
    config = names_of("DroPE")["config"]
    posref = names_of("DroPE")["posref"]
    layers = [posref.from_config(config, layer=layer)["text"] for layer in range(4)]
    assert [entry is None for [entry] in layers] == [False, False, False, True]


def test_every_variant_is_tested_and_says_what_differs() -> None:
    assert {row["variant"] for row in variants()} == {*EQUATIONS, "DroPE"}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        assert section.count("$$") == 2, section.splitlines()[0]
        assert "Used by" in section or "released no code" in section


def test_list_finds_a_variant_by_its_name() -> None:
    for row in variants():
        word = str(row["variant"]).split(",")[0].split(" (")[0]
        shown = run("list", word, env={"COLUMNS": "200"})
        assert shown.exit_code == 0, shown.output
        assert str(row["variant"]) in shown.output
        assert row in named(word)
    printed = run("list", "harope", "--json")
    assert [row["variant"] for row in json.loads(printed.output)] == ["HARoPE"]
