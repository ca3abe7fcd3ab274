"""Pictures differ, and are not constant. That each shows its property is a part of tests/every_encoding."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from posref import plots
from posref.plots.pictures import PICTURES
from posref.spec import REGISTRY


def numbers(chart: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([array.ravel() for array in chart.arrays().values()])


def test_every_operation_states_what_its_picture_shows() -> None:
    assert set(REGISTRY) - set(PICTURES) == set(), "write a function of this name in posref/plots/pictures"
    assert set(PICTURES) - set(REGISTRY) == set()
    for op, picture in PICTURES.items():
        assert picture.says.endswith("."), op
        assert 30 <= len(picture.says) <= 140, op
        assert plots.kinds_of(op)[0].name == picture.kind, op
    assert len({picture.says for picture in PICTURES.values()}) == len(PICTURES)


def test_pictures_differ_and_are_not_constant() -> None:
    seen: dict[str, str] = {}
    wrong = []
    for op in PICTURES:
        drawn = numbers(plots.chart(op))
        if np.nanmin(drawn) == np.nanmax(drawn):
            wrong.append(f"{op}: constant")
        if (other := seen.setdefault(hashlib.sha256(drawn.tobytes()).hexdigest(), op)) != op:
            wrong.append(f"{op}: the picture of {other}")
    assert wrong == []


def shuffled(chart: Any) -> Any:
    """Return a chart with its numbers in other places, and curves a tenth larger."""
    if isinstance(chart, plots.Map):
        cells = np.random.default_rng(0).permutation(chart.values.size)
        return replace(chart, values=chart.values.ravel()[cells].reshape(chart.values.shape))
    series = {}
    for n, (name, (x, y)) in enumerate(chart.series.items()):
        series[name] = (x, 1.1 * y[np.random.default_rng(n).permutation(len(y))])
    return replace(chart, series=series)


def test_pictures_without_their_property_are_refused() -> None:
    accepted = [op for op, picture in PICTURES.items() if picture.holds(shuffled(plots.chart(op)))]
    assert accepted == []


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0.0, 5.0, 9.0], [0.0, 5.0, 9.0]),
        ([4.0, 4.0], [3.5, 4.5]),
        ([-1.0, 9.9, 9.9, 9.9, 8.5], [0.0, 7.0, 8.0, 9.0, 10.0]),
    ],
)
def test_labels_at_the_ends_of_curves_do_not_overlap(places: list[float], expected: list[float]) -> None:
    assert plots.charts.spread(places, 1.0, 0.0, 10.0) == expected


@pytest.mark.parametrize(
    ("panels", "places", "numbers"),
    [
        ((16, 16), [0, 5, 10, 17, 22, 27], [0, 5, 10, 0, 5, 10]),
        ((24,), [0, 10, 20], [0, 10, 20]),
        ((6, 8), [0, 2, 4, 7, 9, 11, 13], [0, 2, 4, 0, 2, 4, 6]),
        ((1, 10), [0, 2, 7], [0, 0, 5]),
    ],
)
def test_the_numbers_of_an_axis_begin_again_in_each_panel(panels: Any, places: list[int], numbers: list[int]) -> None:
    assert plots.charts.ticks_of_panels(panels) == (places, numbers)


def test_panels_are_where_the_blank_cells_are() -> None:
    found = []
    for op in PICTURES:
        chart = plots.chart(op)
        if isinstance(chart, plots.Map):
            blank = np.isnan(chart.values)
            for axis, panels in ((0, chart.columns), (1, chart.rows)):
                between = np.flatnonzero(blank.all(axis=axis)).tolist()
                expected = [int(n) for n in np.cumsum([size + 1 for size in panels]) - 1][:-1]
                assert between == expected, op
                assert not panels or sum(panels) + len(panels) - 1 == chart.values.shape[1 - axis], op
                found += [op] if panels else []
    assert {"rotation_matrix", "mixed_table", "learned"} <= set(found)


@pytest.mark.thorough(dear=True)
def test_labels_are_not_cut() -> None:
    with plots.charts._style(dark=False) as plt:
        for op in PICTURES:
            figure, place = plt.subplots(figsize=(plots.charts.WIDTH, plots.charts.HEIGHT))
            plots.charts._draw(place, plots.chart(op), plots.charts.COLOURS)
            figure.draw_without_rendering()
            whole = figure.bbox
            for axes in figure.axes:
                for text in (axes.xaxis.label, axes.yaxis.label):
                    box = text.get_window_extent()
                    inside = whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
                    assert inside, f"{op}: {text.get_text()}"
            plt.close(figure)
