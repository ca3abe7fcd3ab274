"""The site, built without warnings, and in Debian's Chromium: nothing scrolls sideways, formulas are drawn, search finds."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from sampling import QUARTER, share
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import posref
from posref import analysis
from posref.spec import REGISTRY

SITE = Path(__file__).parents[2] / "docs" / "site"
OUTSIDE = """
const holds = e => ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX);
const kept = e => { while ((e = e.parentElement) && e.tagName !== "ARTICLE") if (holds(e)) return true; };
return [...document.querySelectorAll("article *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !kept(e) && !e.closest("svg svg, symbol"))
  .map(e => e.outerHTML.slice(0, 120));
"""  # what reaches beyond the window, and no box that scrolls by itself holds it
LISTS = ("deviations", "diagnosis", "findings/", "guides/operations", "scoreboard")  # pages that are lists of names
CUT = """
const boxes = [...document.querySelectorAll("article pre, article .table-wrapper")];
return boxes.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent);
"""  # code and tables that end outside their box

EMPTY = """
const article = document.querySelector("article"), texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
const boxes = [...article.querySelectorAll("img, svg, canvas, table, pre")].map(e => e.getBoundingClientRect());
for (const range = document.createRange(); texts.nextNode();) {
  range.selectNodeContents(texts.currentNode);
  boxes.push(...range.getClientRects());
}
const list = document.querySelector(".toc-drawer:not(.no-toc)")?.getBoundingClientRect();
const end = Math.min(innerWidth, list?.width ? list.left : innerWidth), screens = [];
for (let top = 0; top + innerHeight <= document.documentElement.scrollHeight; top += innerHeight / 2) {
  const shown = boxes.filter(e => e.width && e.bottom > top && e.top < top + innerHeight).map(e => e.right);
  if (end - Math.max(...shown) > innerWidth / 3) screens.push(top);
}
return screens;
"""  # where a screen begins that has nothing in its right third
SMALLEST = """
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), sizes = [];
while (texts.nextNode()) {
  const e = texts.currentNode.parentElement, r = e.getBoundingClientRect();
  if (texts.currentNode.data.trim() && r.width && r.height) sizes.push(parseFloat(getComputedStyle(e).fontSize));
}
return Math.min(...sizes);
"""  # pixels of the smallest letter, but in pictures
PHONE, LEGIBLE = 388, 9  # pixels: the width of a picture at 420, and of the smallest letter

KINDS = (  # a page of every kind
    "index", "choose", "gallery", "encodings/index", "encodings/rope", "encodings/mrope", "encodings/layout_2d", "models/index",
    "models/types", "models/qwen", "guides/call", "scoreboard", "deviations", "deviations/rotary", "diagnosis",
    "findings/index", "proved", "api/index", "api/positions", "symptoms", "play", "tolerances",
    "notebooks/sinusoids", "notebooks/rope",
)  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, SITE / "pages.py", folder], check=True)
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", "--keep-going"]  # -P: the installed posref, not this folder's
    command += ["-d", folder / "trees", folder / "source", folder / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_links_resolve_nothing_is_loaded_and_pages_are_small(built: Path) -> None:
    for page in built.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"(?:src|srcset)=\"(?:https?:)?//", text), page
        assert not re.findall(r"<link[^>]*rel=\"(?:stylesheet|preload|preconnect)\"[^>]*href=\"(?:https?:)?//", text), page
        for target in re.findall(r'(?:href|src)="(?!https?:|mailto:|data:|#)([^"#?]+)', text):
            assert (page.parent / unquote(target)).exists(), f"{page.relative_to(built)}: {target}"
        assert page.stat().st_size < 340_000, page  # 2 kB for each of 160 symptoms
    whole = sum(path.stat().st_size for path in built.rglob("*") if path.is_file())
    assert whole < 150_000 * (len(REGISTRY) + 2)  # a page and a picture each are most of it
    assert "yarn" in (built / "searchindex.js").read_text(encoding="utf-8")
    drawn = (built / "encodings" / "rope.html").read_text(encoding="utf-8")
    assert drawn.count('<svg role="img" aria-label=') >= 2


def test_letters_of_pictures_are_legible_on_a_phone(built: Path) -> None:
    pictures = {path.name: path.read_text(encoding="utf-8") for path in built.rglob("*.svg")}
    drawn = {name: re.search(r'<svg [^>]*width="([\d.]+)pt"', text) for name, text in pictures.items()}
    for name, width in drawn.items():
        points = [100 * float(size) for size in re.findall(r"scale\(([\d.]+) -[\d.]+\)", pictures[name])]
        points = [share * min(points) for share in map(float, re.findall(r"\) scale\(([\d.]+)\)", pictures[name]))] + points
        assert not points or (width and min(points) * PHONE / float(width[1]) >= LEGIBLE), name
    assert len(pictures) > len(REGISTRY)


def show(browser: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())


def run(browser: webdriver.Chrome, script: str) -> Any:
    return browser.execute_script(script)


@pytest.mark.parametrize("kind", share(KINDS, QUARTER))
def test_nothing_scrolls_sideways_and_nothing_is_loaded_from_outside(built: Path, browser: webdriver.Chrome, kind: str) -> None:
    for width in (1400, 1000, 420):
        grounds = set()
        for scheme in ("light", "dark"):
            show(browser, built / f"{kind}.html", width, scheme)
            run(browser, "document.querySelectorAll('details').forEach(e => e.open = true)")
            assert run(browser, "return document.documentElement.scrollWidth") <= width, (width, scheme)
            assert run(browser, OUTSIDE) == [], (width, scheme)
            assert width < 600 or run(browser, EMPTY) == [], (width, scheme)
            assert run(browser, SMALLEST) >= LEGIBLE, (width, scheme)
            assert run(browser, CUT) == [], (width, scheme)
            asked = [e["message"] for e in browser.get_log("performance") if 'Network.requestWillBeSent"' in e["message"]]
            assert asked
            assert not [message for message in asked if '"url":"http' in message], asked
            assert [entry for entry in browser.get_log("browser") if "file://" not in entry["message"]] == []
            grounds.add(run(browser, "return getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2  # light and dark


PASTE = """
const box = document.getElementById("symptom-words");
box.value = arguments[0];
box.dispatchEvent(new Event("input"));
"""


def test_the_box_on_the_page_of_symptoms_ranks_entries(built: Path, browser: webdriver.Chrome) -> None:
    """What the script ranks is what `ranking` ranks, for titles of threads; and a link leads to its entry."""
    sys.path.append(str(SITE))
    import ranking
    import symptoms

    titles = [entry.title for entry in symptoms.symptoms()]
    weights = ranking.index()
    show(browser, built / "symptoms.html", 420, "light")
    box, count = (browser.find_element(By.ID, f"symptom-{name}") for name in ("words", "count"))
    listed = "return [...document.querySelectorAll('#symptom-results a')].map(e => e.textContent)"
    whole = "return document.querySelectorAll('article h3').length"
    assert (run(browser, whole), run(browser, listed), count.text) == (len(titles), [], "")
    rows = json.loads((SITE.parents[1] / "tests" / "symptom_titles.json").read_text(encoding="utf-8"))
    titled = [row["title"] for row in rows if row["title"].isascii()]
    for text in (*titled, "interl", "unsloth#3699", "inv_freq", "KeyError: 'type'"):
        if text in titled:
            browser.execute_script(PASTE, text)
        else:
            box.clear()
            box.send_keys(text)
        plain = [re.sub(r"[^\w]", "", titles[number]) for number in ranking.ranked(text, weights)[:8]]
        assert [re.sub(r"[^\w]", "", title) for title in run(browser, listed)] == plain, text
    run(browser, "document.querySelector('#symptom-results a').click()")
    assert run(browser, "return document.querySelector(location.hash + ' > h3') !== null")
    box.clear()
    box.send_keys("qwertyuiop")
    assert (run(browser, listed), count.text.partition(".")[0]) == ([], "No entry has one of these words")


def test_formulas_and_pictures_are_drawn(built: Path, browser: webdriver.Chrome) -> None:
    show(browser, built / "encodings" / "rope.html", 1400, "light")
    sizes = run(
        browser,
        "const widths = svg => [...svg.querySelectorAll('use')].map(glyph => glyph.getBBox().width);"
        "return [...document.querySelectorAll('.math svg')].map(widths)",
    )
    assert len(sizes) >= 2
    assert all(any(width > 0 for width in widths) for widths in sizes)
    assert run(browser, "return document.querySelectorAll('.math symbol').length") == run(
        browser, "return new Set([...document.querySelectorAll('.math symbol')].map(e => e.id)).size"
    )
    assert run(browser, "return document.querySelector('img.picture').naturalWidth") > 300


def test_a_tab_that_is_chosen_shows_its_library(built: Path, browser: webdriver.Chrome) -> None:
    show(browser, built / "encodings" / "rope.html", 420, "light")
    for library, line in (("PyTorch", "import torch"), ("JAX", "import jax.numpy as jnp"), ("NumPy", "import numpy as np")):
        run(browser, f"[...document.querySelectorAll('.sd-tab-label')].find(e => e.textContent.trim() === '{library}').click()")
        shown = [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".sd-tab-content") if e.is_displayed()]
        assert len(shown) == 1
        assert shown[0].startswith(line)


def test_the_search_finds_yarn(built: Path, browser: webdriver.Chrome) -> None:
    browser.get((built / "search.html").as_uri() + "?q=YaRN")
    WebDriverWait(browser, 20).until(
        lambda driver: driver.find_elements(By.CSS_SELECTOR, "#search-results li a[href*='encodings/rope.html']")
    )
    assert browser.find_elements(By.CSS_SELECTOR, "#search-results li a[href*='posref.scaling.YaRN']")


def test_the_search_shows_guides_first_and_lists_of_names_last(built: Path, browser: webdriver.Chrome) -> None:
    browser.get((built / "search.html").as_uri() + "?q=YaRN")
    WebDriverWait(browser, 20).until(
        lambda driver: "found" in driver.find_element(By.CSS_SELECTOR, "#search-results .search-summary").text
    )
    found = run(browser, "return [...document.querySelectorAll('#search-results li > a')].map(e => e.getAttribute('href'))")
    assert found[0].startswith("guides/extension.html")
    named = [link.startswith(LISTS) for link in found]
    assert any(named)
    assert named == sorted(named)


def test_what_is_too_wide_is_found(built: Path, browser: webdriver.Chrome) -> None:
    show(browser, built / "index.html", 420, "light")
    run(browser, "document.querySelector('article').insertAdjacentHTML('beforeend', '<p style=\"width: 700px\">wide</p>')")
    assert run(browser, OUTSIDE) == ['<p style="width: 700px">wide</p>']


# ---- the page to play with ------------------------------------------------------------------------------------------------
MOVE = """
const form = document.getElementById("player");
for (const [name, value] of Object.entries(arguments[0])) form.elements[name].value = value;
form.dispatchEvent(new Event("input"));
return form.drawn;
"""


def test_the_script_of_the_page_to_play_with_conforms(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "the script is checked with node: apt-get install nodejs"
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "posref", "check", "--command", f"{node} {SITE / 'harness.js'}", "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    results = json.loads(report.read_text(encoding="utf-8"))
    passed = re.findall(r"^(\w+) +float64 +\S.* (\d+) pass, \d+ outside", done.stdout, re.MULTILINE)
    assert {op for op, _ in passed} == {"sinusoidal", "rope_frequencies", "alibi_slopes"}, done.stdout
    assert sum(int(number) for _, number in passed) >= 70
    assert results
    assert sum(path.stat().st_size for path in (SITE / "_static").glob("*.js")) < 60_000


def drawn_settings() -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)
    found = []
    for n in range(50):
        found.append({
            "kind": ("sinusoid", "rope", "alibi")[n % 3],
            "scaling": ("None", "Linear", "NTKAware", "YaRN", "Llama3")[n % 5],
            "factor": int(draw.integers(2, 33)) / 2,
            "base": int(draw.integers(10, 61)) / 10,
            "width": 2 * int(draw.integers(2, 33)),
            "heads": int(draw.integers(1, 33)),
            "offset": int(draw.integers(0, 4097)),
            "tokens": int(draw.integers(8, 129)),
        })  # fmt: skip
    return found


def expected(settings: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the page by posref, from the settings that the page says it drew."""
    positions = np.arange(settings["offset"], settings["offset"] + settings["length"])
    if settings["kind"] == "alibi":
        heads = settings["width"]
        bias = posref.alibi(positions, positions, heads=heads, form="distance", dtype=np.float64)
        slopes = posref.alibi_slopes(heads, dtype=np.float64)
        return {"table": bias[:, 0, :].T, "matrix": bias[heads // 2], "curve": bias[heads // 2, 0], "frequencies": slopes}
    base, width, scaling = float(settings["base"]), settings["width"], settings["scaling"]
    record = {
        "None": None,
        "Linear": posref.scaling.Linear(scaling["factor"]),
        "NTKAware": posref.scaling.NTKAware(scaling["factor"]),
        "YaRN": posref.scaling.YaRN(scaling["factor"], 4096),
        "Llama3": posref.scaling.Llama3(scaling["factor"], 4096),
    }[scaling["type"]]
    frequencies, _ = posref.rope_frequencies(width, base=base, scaling=record, xp=np)
    if settings["kind"] == "rope":
        ones = np.ones((len(positions), width))
        table = posref.rope(ones, positions, layout="interleaved", base=base, scaling=record)
    else:
        table = posref.sinusoidal(positions, width, layout="interleaved", base=base, dtype=np.float64)
    curve = analysis.inner_products(table, middle=0)
    return {"table": table, "matrix": analysis.distance_matrix(table), "curve": curve, "frequencies": frequencies}


def test_the_page_to_play_with_draws_the_numbers_of_posref(built: Path, browser: webdriver.Chrome) -> None:
    show(browser, built / "play.html", 1400, "light")
    slowest = []
    for wanted in drawn_settings():
        drawn = browser.execute_script(MOVE, wanted)
        settings = drawn["settings"]
        assert settings["kind"] == wanted["kind"]
        assert settings["base"] == round(10 ** wanted["base"])
        for name, numbers in expected(settings).items():
            # angles up to 4224 are off by as many roundoffs, and rows of 64 channels add 64 of them; a distance near 0 is the
            # root of such an error at most
            least = 1e-6 if name == "matrix" else 4224 * 64 * 2**-52
            np.testing.assert_allclose(drawn["numbers"][name], numbers, rtol=1e-9, atol=least, err_msg=f"{name}: {settings}")
        slowest.append(drawn["milliseconds"])
    assert sorted(slowest)[len(slowest) // 2] < 100
    browser.execute_script(MOVE, {"kind": "rope", "tokens": 128, "width": 64})
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]


AXES = """
return ["table", "matrix", "curve", "frequencies"].map((part) => {
  const canvas = document.querySelector(`figure[data-part="${part}"] canvas`);
  const brush = canvas.getContext("2d");
  const inked = (...box) => brush.getImageData(...box).data.some((value) => value > 0);
  const below = inked(0, canvas.height - 14, canvas.width, 14);
  return { ...canvas.ticks, left: inked(0, 0, 12, canvas.height), below };
});
"""  # the numbers of the axes, and whether something is written beside and below the picture


@pytest.mark.parametrize("kind", ["sinusoid", "rope", "alibi"])
def test_the_pictures_of_the_page_to_play_with_have_numbers_on_their_axes(
    built: Path, browser: webdriver.Chrome, kind: str
) -> None:
    show(browser, built / "play.html", 420, "light")
    for tokens, offset, size in ((8, 0, 4), (50, 4000, 16), (128, 7, 32)):
        drawn = browser.execute_script(MOVE, {"kind": kind, "tokens": tokens, "offset": offset, "width": size, "heads": size})
        table, matrix, curve, frequencies = run(browser, AXES)
        top = 0 if kind == "alibi" else offset
        rows, columns = np.asarray(drawn["numbers"]["table"]).shape
        for axis, ranges in ((table, ((top, rows), (0, columns))), (matrix, ((offset, tokens), (offset, tokens)))):
            for places, (begin, length) in zip((axis["y"], axis["x"]), ranges, strict=True):
                assert 2 <= len(places) <= 7
                assert begin <= min(places) <= max(places) <= begin + length - 1
            assert axis["left"]
            assert axis["below"]
        first = offset if kind == "sinusoid" else 0
        for axis, begin, length in ((curve, first, tokens), (frequencies, 0, len(drawn["numbers"]["frequencies"]))):
            assert 2 <= len(axis["x"]) <= 7
            assert begin <= min(axis["x"]) <= max(axis["x"]) <= begin + length - 1
            assert len(set(np.diff(axis["x"]))) == 1 or len(axis["x"]) == 2
            assert axis["left"]
            assert axis["below"]
        values = [*drawn["numbers"]["curve"], 0]
        assert 2 <= len(curve["y"]) <= 8
        assert min(values) <= min(curve["y"]) + 1e-9
        assert max(curve["y"]) <= max(values) + 1e-9
        found = drawn["numbers"]["frequencies"]
        assert 2 <= len(frequencies["y"]) <= 8
        assert min(found) * (1 - 1e-9) <= min(frequencies["y"]) < max(frequencies["y"]) <= max(found) * (1 + 1e-9)


def test_the_page_to_play_with_obeys_the_keyboard(built: Path, browser: webdriver.Chrome) -> None:
    show(browser, built / "play.html", 420, "dark")
    slider = browser.find_element(By.ID, "play-length")
    before = run(browser, "return document.getElementById('player').drawn.settings.length")
    slider.send_keys("\ue014")  # arrow right
    assert run(browser, "return document.getElementById('player').drawn.settings.length") == before + 1
    assert browser.find_element(By.CSS_SELECTOR, 'output[for="play-length"]').text == str(before + 1)
    assert f"tokens={before + 1}" in run(browser, "return location.hash")
    run(browser, "location.hash = '#kind=alibi&heads=4&length=1&scaling=none'")  # the last two are no setting of this form
    drawn = "const { kind, width, length } = document.getElementById('player').drawn.settings; return [kind, width, length]"
    WebDriverWait(browser, 5).until(lambda _: run(browser, drawn) == ["alibi", 4, before + 1])
