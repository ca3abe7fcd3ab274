"""The site, built without warnings, and in Debian's Chromium: nothing scrolls sideways, formulas are drawn, search finds."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(__file__).parents[2] / "docs" / "site"
INSTALL = "apt-get install chromium chromium-driver"
SWITCHES = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
 --disable-component-update --disable-sync --disable-dev-shm-usage"""
OUTSIDE = """
const holds = e => ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX);
const kept = e => { while ((e = e.parentElement) && e.tagName !== "ARTICLE") if (holds(e)) return true; };
return [...document.querySelectorAll("article *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !kept(e) && !e.closest("svg svg, symbol"))
  .map(e => e.outerHTML.slice(0, 120));
"""  # what reaches beyond the window, and no box that scrolls by itself holds it
LISTS = ("deviations", "diagnosis", "findings/", "guides/operations", "scoreboard")  # pages that are lists of names
KINDS = (  # a page of every kind
    "index", "choose", "gallery", "encodings/index", "encodings/rope", "encodings/mrope", "encodings/layout_2d", "models/index",
    "models/types", "models/qwen", "guides/call", "scoreboard", "deviations", "diagnosis", "findings/index", "proved",
    "api/index", "api/positions",
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
        assert page.stat().st_size < 400_000, page
    assert sum(path.stat().st_size for path in built.rglob("*") if path.is_file()) < 10_000_000
    assert "yarn" in (built / "searchindex.js").read_text(encoding="utf-8")
    drawn = (built / "encodings" / "rope.html").read_text(encoding="utf-8")
    assert drawn.count('<svg role="img" aria-label=') >= 2


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    assert all(programs.values()), f"the site is tested in a browser: {INSTALL}"
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    for switch in SWITCHES.split():
        options.add_argument(switch)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(programs["chromedriver"])))
    yield driver
    driver.quit()


def show(browser: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())


def run(browser: webdriver.Chrome, script: str) -> Any:
    return browser.execute_script(script)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_scrolls_sideways_and_nothing_is_loaded_from_outside(built: Path, browser: webdriver.Chrome, kind: str) -> None:
    for width in (1400, 420):
        grounds = set()
        for scheme in ("light", "dark"):
            show(browser, built / f"{kind}.html", width, scheme)
            run(browser, "document.querySelectorAll('details').forEach(e => e.open = true)")
            assert run(browser, "return document.documentElement.scrollWidth") <= width, (width, scheme)
            assert run(browser, OUTSIDE) == [], (width, scheme)
            asked = [e["message"] for e in browser.get_log("performance") if 'Network.requestWillBeSent"' in e["message"]]
            assert asked
            assert not [message for message in asked if '"url":"http' in message], asked
            assert [entry for entry in browser.get_log("browser") if "file://" not in entry["message"]] == []
            grounds.add(run(browser, "return getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2  # light and dark


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
