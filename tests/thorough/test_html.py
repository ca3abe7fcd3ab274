"""The HTML report in Debian's Chromium: what it says, sorting, filtering, hostile text, and no network."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from reporting import HOSTILE, case, document, every_verdict, hostile, of_reference, of_the_example, operation, unfinished
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from posref.conformance.reports import html

ROOT = Path(__file__).parents[2]


class Page:
    """A report's page, opened from a file."""

    def __init__(self, browser: webdriver.Chrome, report: dict[str, Any], folder: Path) -> None:
        self.browser, self.file = browser, folder / "report.html"
        self.source = html.render(report)
        self.file.write_text(self.source, encoding="utf-8")
        for kind in ("browser", "performance"):
            browser.get_log(kind)
        browser.get(self.file.as_uri())
        shown = ["complete", self.file.as_uri()]  # `get` may return before a busy browser has left the last page
        WebDriverWait(browser, 60).until(lambda _: self.run("return [document.readyState, location.href]") == shown)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of what is shown."""
        return [e.text for e in self.all(selector) if e.is_displayed()]

    def run(self, script: str) -> Any:
        return self.browser.execute_script(script)

    def assert_quiet(self) -> None:
        """Nothing in the console (so no violation of the policy either), and the page itself is all that was fetched."""
        assert self.browser.get_log("browser") == []
        events = [json.loads(entry["message"]) for entry in self.browser.get_log("performance")]
        own = [e["message"] for e in events if e["webview"] == self.browser.current_window_handle]  # not the browser's own
        sent = {e["params"]["request"]["url"] for e in own if e["method"] == "Network.requestWillBeSent"}
        assert {url for url in sent if not url.startswith(("chrome", "data:"))} == {self.file.as_uri()}
        assert self.run("return performance.getEntriesByType('resource').length") == 0


@pytest.fixture(scope="module")
def broken() -> dict[str, Any]:
    return of_the_example().to_json()


@pytest.fixture
def page(browser: webdriver.Chrome, broken: dict[str, Any], tmp_path: Path) -> Page:
    return Page(browser, broken, tmp_path)


def counts_of(report: dict[str, Any], op: str) -> Counter[str]:
    """Return the verdicts of an operation's cases, without the calls that must be refused."""
    (found,) = [operation for operation in report["operations"] if operation["op"] == op]
    return Counter(found["counts"])


def test_the_page_says_whether_what_and_where(page: Page, broken: dict[str, Any]) -> None:
    assert page.texts("h1") == ["broken_rope"]
    assert page.browser.title == "Not conformant: broken_rope"
    assert str(ROOT / "examples/broken_rope.py") in page.texts(".facts")[0]
    assert page.texts(".state strong") == ["NOT CONFORMANT"]
    whole = sum((counts_of(broken, operation["op"]) for operation in broken["operations"]), Counter())
    assert whole["fail"] > 10
    assert f"{whole['pass']} pass, {whole['fail']} fail, {whole['unsupported']} unsupported" in page.texts(".facts")[0]
    rope = counts_of(broken, "rope")
    findings = page.texts(".findings li")
    assert len(findings) == 2
    assert findings[0].startswith("rope_table float32")
    assert "positions are held in float16" in findings[0]
    rows = [row.text.split() for row in page.all("#summary tbody tr")]
    assert [row[:3] for row in rows][:2] == [["rope_table", "float32", "fail"], ["rope", "float32", "fail"]]
    assert rows[1][3:8] == ["none", "angle32", ">", "1e6", f"{rope['pass']}/{rope.total()}"]
    section = page.all("#rope-float32")[0].text
    for said in ("first failure at position 2049", "Diagnosis:", "Seen in Modalities#462", "64 to 4096 no class"):
        assert said in section
    first = page.texts("#rope-float32 .cases tbody th")[0]
    assert first in {case["id"] for case in broken["cases"] if case["op"] == "rope" and case["verdict"] == "fail"}
    assert f"--case {first} --dtype float32" in section
    page.assert_quiet()


def test_the_figures_show_bounds_and_what_is_beyond_them(page: Page, broken: dict[str, Any]) -> None:
    curve = next(op for op in broken["operations"] if op["op"] == "rope")["curve"]
    assert sorted(page.texts("#rope-float32 svg.curve text.bound")) == ["angle32", "angle64"]
    assert page.texts("#rope-float32 svg.curve text.claim") == ["angle32"]
    assert page.texts("#rope-float32 svg.curve text.first") == ["first fails at 2049"]
    beyond = [p for p in curve if not float(p["ratio"]) <= 1]
    assert len(page.all("#rope-float32 svg.curve .over")) == len(beyond) > 0
    assert len(page.all("#rope-float32 svg.curve .within circle")) == len(curve) - len(beyond)
    where = (
        "const box = e => e.getBoundingClientRect(); const f = box(document.querySelector('#rope-float32 svg.curve .frame'));"
    )
    inside = "b.left > f.left - 6 && b.right < f.right + 6 && b.top > f.top - 6 && b.bottom < f.bottom + 6"
    marks = "[...document.querySelectorAll('#rope-float32 svg.curve :is(.over, .within circle)')]"
    assert page.run(f"{where} return {marks}.every(e => {{ const b = box(e); return {inside}; }})")
    titles = page.run(f"return {marks}.map(e => e.textContent)")
    title = r"position 2049: error 4\.2, 5\.8e2 times the bound; rope/usual/half-128-decode"
    assert any(re.fullmatch(title, t) for t in titles)
    assert len(page.texts("#rope-float32 .map .legend li")) == 9
    assert [text.split(";")[0] for text in page.texts("#rope-float32 .marks li")] == [
        "within the bound", "beyond it", "what the class claimed allows", "what other classes allow", "first failing position",
    ]  # fmt: skip
    assert page.texts("#rope-float32 .axes")[0].startswith("Vertical: error")


@pytest.mark.thorough(dear=True)
def test_cases_that_pass_or_lie_outside_are_folded_until_asked(page: Page, broken: dict[str, Any]) -> None:
    rope, frequencies = counts_of(broken, "rope"), counts_of(broken, "rope_frequencies")
    passing, outside = f"{rope['pass']} passing", f"{rope['unsupported'] + 4} outside the scope"
    assert page.texts("#rope-float32 details > summary")[2:] == [
        "Coverage by option and position", f"{rope['fail']} failing", passing, "4 invalid calls", outside,
    ]  # fmt: skip
    assert len(page.texts("#rope-float32 .cases tbody tr")) == rope["fail"]
    assert not [text for text in page.texts(".outside li") if text]
    page.all("#rope-float32 details.outside-the-scope > summary")[0].click()
    listed = page.texts("#rope-float32 .cases tbody tr")  # the calls to be refused are listed there too
    assert len(listed) == rope["fail"] + rope["unsupported"] + 4
    page.all(".facts details.outside > summary")[-1].click()
    assert any(
        text.startswith(f"scope of rope_frequencies: {frequencies['pass']} of {frequencies.total()} cases")
        for text in page.texts(".outside li")
    )


def test_coverage_is_told_by_option_and_position(page: Page, broken: dict[str, Any]) -> None:
    page.all("#rope-float32 details.coverage > summary")[0].click()
    rows = [row.text.split() for row in page.all("#rope-float32 .coverage tbody tr")]
    total = counts_of(broken, "rope")
    assert rows[0][:2] == ["layout", "half"]
    assert rows[0][3:] == [str(total["pass"] + total["fail"]), str(total["pass"])]
    assert rows[-1][:3] == ["65536", "and", "beyond"]
    assert rows[-1][4:] == ["3", "0"]
    rope = next(op for op in broken["operations"] if op["op"] == "rope")
    for axis in {row["axis"] for row in rope["coverage"]} - {"positions"}:  # sequences may count under two words
        asked = sum(row["asked"] for row in rope["coverage"] if row["axis"] == axis)
        assert asked >= sum(rope["counts"].values())


def test_a_map_reads_out_the_value_under_the_pointer(page: Page) -> None:
    cells = page.all("#rope-table-float32 .cells")[0]
    webdriver.ActionChains(page.browser).move_to_element(cells).perform()
    [reading] = page.texts("#rope-table-float32 .reading")
    assert re.fullmatch(r"position \d+, entry \d: .+ times the bound", reading)


def test_sorting(page: Page, broken: dict[str, Any]) -> None:
    def column(k: int) -> list[str]:
        return [row.find_elements(By.CSS_SELECTOR, "th,td")[k].text for row in page.all("#summary tbody tr")]

    heads = page.all("#summary thead button")
    assert [h.text for h in heads][:3] == ["operation", "dtype", "verdict"]
    heads[0].click()
    assert column(0) == sorted(column(0))
    assert page.all("#summary thead th")[0].get_attribute("aria-sort") == "ascending"
    heads[0].click()
    assert column(0) == sorted(column(0), reverse=True)
    heads[5].click()
    *ratios, third, last = column(5)  # the first depends on the powers of the processor
    assert (0.0 < float(ratios[0]) < 0.5, ratios[1:], third, last) == (True, ["0.88"], "> 1e6", "> 1e6")
    heads[6].send_keys("\n")  # by keyboard
    counts = [counts_of(broken, operation["op"]) for operation in broken["operations"]]
    shares = sorted((c["pass"] / c.total(), f"{c['pass']}/{c.total()}") for c in counts)
    assert column(6) == [text for _, text in shares]
    assert page.all("#summary thead th")[5].get_attribute("aria-sort") is None
    page.assert_quiet()


def test_filtering(page: Page, broken: dict[str, Any]) -> None:
    form = page.all("form.tools[data-for=summary]")[0]
    form.find_element(By.NAME, "text").send_keys("APPLY")
    assert page.texts("#summary tbody th") == ["apply_rope"]
    assert form.find_element(By.TAG_NAME, "output").text == "1 of 4"
    form.find_element(By.NAME, "text").clear()
    form.find_element(By.NAME, "verdict").send_keys("fail")
    assert page.texts("#summary tbody th") == ["rope_table", "rope"]
    shown = page.texts("#rope-float32 .failing tbody tr")
    assert len(shown) == counts_of(broken, "rope")["fail"]  # calls that were not refused are not among them
    assert all("fail" in row for row in shown)
    page.all("#rope-float32 details.passing > summary")[0].click()
    cases = page.all("#rope-float32 .passing form.tools")[0]
    cases.find_element(By.NAME, "text").send_keys("DECODE")
    found = [row.split()[0] for row in page.texts("#rope-float32 .passing tbody tr")]
    assert found
    assert any("decode" in name for name in found)
    assert cases.find_element(By.TAG_NAME, "output").text == f"{len(found)} of {counts_of(broken, 'rope')['pass']}"


def test_sections_of_what_passes_are_closed_until_their_link_is_followed(browser: webdriver.Chrome, tmp_path: Path) -> None:
    report = document([operation(), operation("alibi")], [case("a", "pass"), case("b", "pass", op="alibi")])
    page = Page(browser, report, tmp_path)
    assert page.texts(".state strong") == ["CONFORMANT"]
    assert page.texts(".findings") == []
    assert page.texts(".command") == []
    page.all("#summary tbody a")[1].click()
    assert page.texts(".command") == ["posref check me --op alibi --dtype float32"]
    page.assert_quiet()


def test_hostile_text_is_text(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = Page(browser, hostile(), tmp_path)
    page.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert "owned" not in page.browser.title.replace('document.title="owned"', "")
    assert page.texts("h1")[0].startswith(
        '<script>document.title="owned"</script>"><img src=x onerror=alert(1)>\'\N{REPLACEMENT CHARACTER}[31m'
    )
    assert len(page.all("script")) == 1
    assert len(page.all("style")) == 1
    assert page.all("img, iframe, object, link, base, foreignObject, embed") == []
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).map(a => a.name).filter(n => n.startsWith('on'))"
    )
    assert page.run(f"return {handlers}") == []
    assert "{{7*7}}" in page.texts(".facts")[0]
    assert HOSTILE not in page.source
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page.source)
    page.assert_quiet()


def test_every_address_on_the_page_is_a_fragment_of_it(page: Page) -> None:
    links = page.run("return [...document.querySelectorAll('[href], [src], [action]')].map(e => e.getAttribute('href'))")
    ids = page.run("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert len(ids) == len(set(ids))
    assert not re.search(r"url\(|@import|https?:|//[a-z]", re.sub(r"sha256-[A-Za-z0-9+/=]+", "", page.source))


def test_the_policy_admits_nothing_but_its_own_script(page: Page) -> None:
    policy = page.all("meta[http-equiv=Content-Security-Policy]")[0].get_attribute("content") or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    page.run("const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s)")
    page.run("document.body.append(Object.assign(new Image(), {src: 'data:,x'}))")
    assert page.browser.title.startswith("Not conformant")
    assert len([entry for entry in page.browser.get_log("browser") if "Content Security Policy" in entry["message"]]) == 2


def test_the_page_can_be_read_without_script(browser: webdriver.Chrome, broken: dict[str, Any], tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = Page(browser, broken, tmp_path)
        assert page.texts(".state strong") == ["NOT CONFORMANT"]
        assert len(page.texts("#rope-float32 .cases tbody tr")) == counts_of(broken, "rope")["fail"]
        assert len(page.all("#rope-float32 .cases tbody tr")) > counts_of(broken, "rope").total()  # and calls to be refused
        assert page.texts("form") == []  # what needs script is not shown
        assert page.texts("#rope-float32 svg.curve text.claim") == ["angle32"]
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [390, 420, 820, 1400])
def test_nothing_overflows(browser: webdriver.Chrome, broken: dict[str, Any], tmp_path: Path, width: int) -> None:
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for report in (broken, hostile(), every_verdict()):
            page = Page(browser, report, tmp_path)
            page.run("document.querySelectorAll('details').forEach(e => e.open = true)")
            assert page.run("return document.documentElement.scrollWidth") <= width
            assert page.run("return innerWidth") == width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_text_stands_out_from_its_ground_in_light_and_dark(page: Page) -> None:
    """WCAG AA: 4.5 to 1 for text."""
    try:
        for scheme in ("light", "dark"):
            features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
            style = "getComputedStyle(document.documentElement).getPropertyValue('--%s').trim()"
            names = ("bg", "panel", "fg", "muted", "link", "good", "bad", "warn")
            colours = {name: page.run("return " + style % name) for name in names}
            for ground in ("bg", "panel"):
                for name in names[2:]:
                    assert contrast(colours[name], colours[ground]) >= 4.5, (scheme, name, ground)
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        digits = colour.lstrip("#")
        digits = "".join(d * 2 for d in digits) if len(digits) == 3 else digits
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_incomplete_reports_say_so_and_nothing_else(browser: webdriver.Chrome, tmp_path: Path) -> None:
    whole = document([operation(), operation("alibi")], [case("a", "pass"), case("b", "pass", op="alibi")])
    for report in unfinished(whole):
        page = Page(browser, report, tmp_path)
        assert page.texts(".state strong") == ["INCOMPLETE"]
        assert page.browser.title == "Incomplete: me"


@pytest.mark.thorough(dear=True)
def test_the_whole_core_tier_in_four_dtypes_is_small(browser: webdriver.Chrome, tmp_path: Path) -> None:
    report = of_reference(backend="torch")
    page = Page(browser, report.to_json(), tmp_path)
    assert len(page.source.encode()) < 450 * sum(len(operation.cases) for operation in report.operations)  # 5 MB in all
    assert page.texts(".state strong") == ["CONFORMANT"]
    assert len(page.all("#summary tbody tr")) > 40
    page.assert_quiet()
