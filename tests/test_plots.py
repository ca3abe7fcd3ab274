"""Pictures: every number drawn is that of an independent computation, and every operation has a picture."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import run
from sampling import few, share

import posref
from posref import analysis, backends, plots
from posref.plots import calls, charts
from posref.spec import REGISTRY, Axes

PE = posref.sinusoidal(np.arange(24), 16, layout="interleaved")
FREQ = 10000.0 ** -(np.arange(0, 64, 2) / 64)


# ---- analysis against a few lines of NumPy ----------------------------------------------------------------------------------
def _scalar_bound(n: float) -> float:
    sums = [abs(sum(np.exp(1j * n * f) for f in FREQ[:j])) for j in range(1, len(FREQ) + 1)]
    return float(np.mean(sums))


COMPUTED = {
    "distance_matrix": (lambda a: analysis.distance_matrix(a(PE)), [[np.linalg.norm(p - q) for q in PE] for p in PE]),
    "distances_from": (
        lambda a: analysis.distances_from(a(PE), (3, 20)),
        [[np.linalg.norm(PE[c] - q) for q in PE] for c in (3, 20)],
    ),
    "correlation_matrix": (lambda a: analysis.correlation_matrix(a(PE)), np.corrcoef(PE)),
    "pairs": (lambda a: analysis.pairs(a(PE @ PE.T)), (PE @ PE.T)[np.triu_indices(24, 1)]),
    "inner_products": (
        lambda a: analysis.inner_products(a(PE), middle=7, wq=a(PE[:5]), wk=a(PE[3:8])),
        [(PE[:5] @ PE[7]) @ (PE[3:8] @ row) for row in PE],
    ),
    "wavelengths": (lambda a: analysis.wavelengths(a(np.append(FREQ, 0.0))), np.append(2 * np.pi / FREQ, np.inf)),
    "frequency_ratio": (lambda a: analysis.frequency_ratio(a(FREQ / 3), a(FREQ)), np.full(32, 1 / 3)),
    "decay": (lambda a: analysis.decay(a(FREQ), a(np.arange(50.0))), [np.cos(n * FREQ).mean() for n in range(50)]),
    "decay_bound": (lambda a: analysis.decay_bound(a(FREQ), a(np.arange(9.0))), [_scalar_bound(n) for n in range(9)]),
    "by_distance": (lambda a: analysis.by_distance(a(PE)), PE[-1, ::-1]),
}


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("name", COMPUTED)
def test_the_numbers(name: str, library: str) -> None:
    backend = backends.load(library)
    compute, expected = COMPUTED[name]
    found = backend.to_numpy(compute(lambda x: backend.from_numpy(np.ascontiguousarray(x), "float64", None)))
    # sums of up to 50 terms of float64, each library in its own order: at most 64 roundoffs
    np.testing.assert_allclose(found, expected, rtol=64 * 2**-52, atol=64 * 2**-52)


@pytest.mark.parametrize(("bits", "dtype"), [(24, np.float32), (11, np.float16)])
def test_the_error_of_angles(bits: int, dtype: Any) -> None:
    places = np.asarray([1.0, 7.0, 257.0, 2049.0])
    held = (places.astype(dtype)[:, None] * FREQ.astype(dtype)).astype(dtype).astype(np.float64)
    true = places[:, None] * FREQ
    expected = np.hypot(np.cos(held) - np.cos(true), np.sin(held) - np.sin(true)).max(axis=-1)
    # differences of cosines and sines of the same angles: each is at most 1, and within one roundoff
    np.testing.assert_allclose(analysis.angle_error(FREQ, places, bits=bits), expected, rtol=0, atol=4 * 2**-52)


def test_a_row_of_equal_values_has_no_correlation() -> None:
    assert np.isnan(analysis.correlation_matrix(np.asarray([[1.0, 1.0], [1.0, 2.0]]))[0]).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: analysis.distance_matrix(FREQ),
            "distance_matrix: table must be 2-D, with a row for each position; got shape (32,).",
        ),
        (lambda: analysis.distances_from(PE, (24,)), "distances_from: chosen must be rows of the table, below 24; got 24."),
        (
            lambda: analysis.inner_products(PE, middle=0, wq=PE),
            "inner_products: wq and wk must be given together; got one of them.",
        ),
        (
            lambda: analysis.inner_products(PE, middle=24),
            "inner_products: middle must be a row of the table, below 24; got 24.",
        ),
        (lambda: analysis.decay(PE, FREQ), "decay: frequencies must have one axis; got shape (24, 16)."),
        (lambda: analysis.decay(FREQ, PE), "decay: distances must have one axis; got shape (24, 16)."),
        (lambda: analysis.pairs(PE), "pairs: matrix must be square; got shape (24, 16)."),
        (lambda: analysis.by_distance(FREQ), "by_distance: bias must have axes of queries and keys; got shape (32,)."),
        (lambda: plots.chart("sinus"), "chart: op must be the name of an operation; got 'sinus'."),
        (lambda: plots.chart("alibi", tokens=1), "chart: tokens must be an int from 2 to 4096; got 1."),
        (lambda: plots.chart("alibi", "mask"), "chart: kind must be one of bias, matrix, example for alibi; got 'mask'."),
        (
            lambda: plots.chart("alibi", base=2.0),
            "chart: options of alibi must be among heads, form, max_bias, root, first, count; got base.",
        ),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        call()
    assert str(caught.value) == text


# ---- what each kind draws ---------------------------------------------------------------------------------------------------
@pytest.mark.thorough(dear=True)
def test_every_kind_is_drawn_of_some_operation(tmp_path: Path) -> None:
    left = set(plots.KINDS)
    for op in REGISTRY:
        for kind in plots.kinds_of(op):
            if kind.name in left:
                left.remove(kind.name)
                plots.save([kind.chart(plots.calls.Asked(op))], tmp_path / f"{kind.name}.png")
                assert (tmp_path / f"{kind.name}.png").stat().st_size > 5000
    assert not left


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_every_picture_is_drawn(op: str, tmp_path: Path) -> None:
    for kind in plots.kinds_of(op):
        plots.save([kind.chart(plots.calls.Asked(op))], tmp_path / f"{kind.name}.svg")
        assert "nan" not in (tmp_path / f"{kind.name}.svg").read_text(encoding="utf-8").split("<image")[0].lower().split()


@few(1, ("op", "kind"), [("sinusoidal", "from"), ("rope_frequencies", "scaling"), ("rope", "error")])
def test_a_legend_hides_no_curve_and_is_not_cut(op: str, kind: str) -> None:
    with plots.charts._style(dark=False) as plt:
        figure, place = plt.subplots(figsize=(plots.charts.WIDTH, plots.charts.HEIGHT))
        plots.charts._draw(place, plots.chart(op, kind), plots.charts.COLOURS)
        figure.draw_without_rendering()
        legend, whole = place.get_legend().get_window_extent(), figure.bbox
        label = place.xaxis.label.get_window_extent()
        plt.close(figure)
    assert legend.y1 < label.y0
    assert legend.y0 >= whole.y0
    assert whole.x0 <= legend.x0 < legend.x1 <= whole.x1


@few(1, "kind", ["wavelengths", "error", "scaling"])
def test_numbers_of_a_logarithmic_axis_have_no_small_exponents(kind: str) -> None:
    with charts._style(dark=False) as plt:
        figure, place = plt.subplots()
        charts._draw(place, plots.chart("rope_frequencies" if kind == "scaling" else "rope", kind), charts.COLOURS)
        figure.canvas.draw()
        texts = [label.get_text() for axis in (place.xaxis, place.yaxis) for label in axis.get_ticklabels(which="both")]
        plt.close(figure)
    assert any(texts)
    assert not [text for text in texts if "$" in text]
    assert list(map(charts.written_out, (1e-7, 1e-3, 0.5, 1e5, 2e6))) == ["1e-7", "0.001", "0.5", "100000", "2e6"]


def test_charts_hold_the_encoding() -> None:
    table = plots.chart("sinusoidal", "table", tokens=24, dim=16, base=10.0).arrays()["values"]
    np.testing.assert_array_equal(table, posref.sinusoidal(np.arange(24.0), 16, layout="interleaved", base=10.0))
    distance = plots.chart("sinusoidal", "distance", tokens=24, dim=16).arrays()["values"]
    # the root of a sum of 16 squares: at most 18 roundings
    np.testing.assert_allclose(distance, [[np.linalg.norm(p - q) for q in PE] for p in PE], rtol=18 * 2**-52, atol=0)
    bias = plots.chart("alibi", tokens=9, heads=3, form="causal").arrays()
    assert bias["head 2/y"].tolist() == (-0.25 * np.arange(9.0)).tolist()
    seen = plots.chart("sliding_window", tokens=5, window=2, counting="with_query", sides="causal").arrays()["values"]
    assert seen.tolist() == [[float(k in (q - 1, q)) for k in range(5)] for q in range(5)]
    waves = plots.chart("rope", "wavelengths", base=100.0, rotary_dim=8).arrays()["base 100/y"]
    # a power and a quotient here, a power and a product there
    np.testing.assert_allclose(waves, 2 * np.pi * 100.0 ** (np.arange(4) / 4), rtol=4 * 2**-52)
    ratio = plots.chart("rope", "scaling", scaling=posref.scaling.Linear(4.0)).arrays()["Linear/y"]
    assert set(ratio.tolist()) == {0.25}
    axes = plots.chart("mrope", "axes", sections=(2, 3, 3), arrangement="chunked").arrays()
    assert [len(axes[f"{name}/x"]) for name in ("time", "height", "width")] == [2, 3, 3]
    assert axes["height/x"].tolist() == [2, 3, 4]


# ---- the command ------------------------------------------------------------------------------------------------------------
@few(1, "ending", ["svg", "png", "pdf"])
def test_the_bytes_repeat(ending: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.{ending}" for n in (1, 2)]
    for file in files:
        assert run("plot", "sinusoidal", "--kind", "distance", "--base", "10", "-o", file).exit_code == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.thorough
def test_side_by_side_with_data(tmp_path: Path) -> None:
    words = ["--compare", "llama-3.1-8b", "rope", "--kind", "wavelengths", "-o", str(tmp_path / "a.svg")]
    found = run("plot", *words, "--save-data", tmp_path / "a.json")
    assert found.exit_code == 0, found.output
    assert found.output.startswith(f"wrote {tmp_path / 'a.svg'}: wavelengths. ")
    data = json.loads((tmp_path / "a.json").read_text())
    assert len(data["0/llama-3.1-8b/Llama3/y"]) == 64
    assert "1/rope/base 10000/y" in data
    assert run("plot", "sinusoidal", "--base", "10", "--base", "100", "-o", tmp_path / "b.png").exit_code == 0
    assert run("plot", "alibi", "-o", tmp_path / "c.pdf", "--save-data", tmp_path / "c.npz", "--heads", "2").exit_code == 0
    assert sorted(np.load(tmp_path / "c.npz")) == ["head 0/x", "head 0/y", "head 1/x", "head 1/y"]


@pytest.mark.thorough
def test_all_kinds_into_a_folder(tmp_path: Path) -> None:
    assert run("plot", "alibi", "--kind", "all", "-o", tmp_path / "f").exit_code == 0
    assert sorted(file.name for file in (tmp_path / "f").iterdir()) == ["bias.svg", "example.svg", "matrix.svg"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "plot: NAME must be an operation (posref list) or a preset (posref list --presets); got none."),
        (["sinus"], "NAME must be the name of an operation; got 'sinus'. Did you mean "),
        (["alibi", "--kind", "mask"], "plot: kind must be one of bias, matrix, example for alibi; got 'mask'."),
        (["alibi", "-o", "a.gif"], "plot: --out must end in .svg, .png, .pdf; got 'a.gif'."),
        (["alibi", "--save-data", "a.csv"], "plot: --save-data must end in .npz or .json; got 'a.csv'."),
        (
            ["alibi", "--base", "3"],
            "plot: --option must be one of heads, form, max_bias, root, first, count for alibi; got 'base'.",
        ),
        (["phi-3-mini-128k"], "got 'phi-3-mini-128k'. There is also phi-3-mini-4k, phi-3-vision-128k, phi-3.5-mini."),
        (
            ["alibi", "--option", "num_heads=4"],
            "one of heads, form, max_bias, root, first, count for alibi; got 'num_heads'. Did you mean heads?",
        ),
        (["rope", "--option", "theta=4"], "length, inverse, lanes for rope; got 'theta'. Did you mean base?"),
        (["rope", "--option", "layout=halves"], "rope: layout must be one of 'half', 'interleaved', 'interleaved_to_half'"),
    ],
)
def test_wrong_words(words: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind = ["--kind", "table"] if words[:1] == ["rope"] else []
    found = run("plot", *words, *kind)
    assert (found.exit_code, text in found.output) == (2, True), found.output
    assert not list(tmp_path.iterdir())


def test_nothing_else_loads_matplotlib() -> None:
    code = "import sys, posref, posref.cli, posref.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd="/").returncode == 0


def test_ids_show_every_row_and_every_rank() -> None:
    rows = plots.chart("positions_from_mask", "ids", padding=7).arrays()["values"]
    assert rows[0].tolist() == list(range(24))
    assert rows[2].tolist() == [7] * 9 + list(range(15))
    assert rows[3].tolist() == list(range(16)) + [7] * 8
    shards = plots.chart("zigzag_shard", "ids").arrays()["values"]
    assert np.argwhere(~np.isnan(shards))[:, 0].tolist() == [rank for rank in range(4) for _ in range(12)]
    assert [int(k) for k in np.flatnonzero(~np.isnan(shards[1]))] == [*range(6, 12), *range(36, 42)]
    assert np.nansum(shards, axis=1).tolist() == [66.0] * 4  # 0 to 11 in each
    steps = plots.chart("visible_windows", "ids", rate=8, tokens=20).arrays()
    assert steps["windows/y"].tolist() == [0] * 7 + [1] * 8 + [2] * 5
    documents = plots.chart("packed_documents", "ids").arrays()["values"]
    assert documents[2].tolist() == [0] * 5 + [1] * 8 + [2] * 11


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (4,), (2, 3, 4)])
def test_a_mask_of_queries_and_keys_reaches_every_token(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]) -> None:
    """Axes of size 1, and axes that are left out, are those of a mask that broadcasts."""
    inputs = {"mask": np.zeros(shape, dtype=bool), "q_positions": np.arange(3), "k_positions": np.arange(4)}
    places = {"q_positions": Axes("*B Q", "position"), "k_positions": Axes("*B K", "position")}
    record: Any = SimpleNamespace(arrays={"mask": Axes("~*B ~Q ~K", "mask"), **places})
    asked: Any = SimpleNamespace(op="new", record=record)
    monkeypatch.setattr(calls, "first_case", lambda op: SimpleNamespace(inputs=inputs))
    found = calls.beside(asked, 9)
    assert list(found) == ["mask"]
    assert found["mask"].all()
    assert np.broadcast_shapes(found["mask"].shape[-2:], (9, 9)) == (9, 9)
