"""The report in a real browser: it says nothing wrong, asks nobody, can be read by all, and names stay names."""

from __future__ import annotations

from pathlib import Path

import pytest

from hynt.front.run import load
from hynt.reporting.report.page import NAVIGATION, make_report
from tests.browser.hostile_names import ATTACKS


@pytest.fixture(scope="module")
def report(hostile_run, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    predictor = load(hostile_run, "cpu")
    attacked = predictor.names.entity("p12")
    path.write_text(make_report(predictor, entity=attacked).page, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "view, scheme", [("laptop", "light"), ("laptop", "dark"), ("phone", "light"), ("phone", "dark")]
)
def test_report_reads_well(report, open_page, view, scheme):
    watched = open_page(view, scheme)
    watched.page.goto(report.as_uri())
    assert watched.page.title() == "hynt on people & towns · hynt"
    assert watched.page.locator("h1").all_inner_texts() == ["hynt on people & towns"]
    sections = [one.get_attribute("id") for one in watched.page.locator("main > section").all()]
    assert sections == [name for name, _ in NAVIGATION]
    watched.screenshot(f"report-{view}-{scheme}")
    watched.check_fits()
    watched.check_accessibility()


def test_names_are_text_and_nothing_runs(report, open_page):
    watched = open_page()
    watched.page.goto(report.as_uri())
    page = watched.page
    assert page.locator("script, img, iframe, object, embed, form, link, [onerror], [onload]").count() == 0
    assert page.locator("main h1").count() == 0
    assert page.title().startswith("hynt on people")
    assert "employer <b>" in page.locator("#breakdowns").inner_text()
    shown = page.evaluate("document.body.textContent")
    assert ATTACKS[3] in shown
    assert sum(attack in shown for attack in ATTACKS) >= 4, "too few attacks reached the page to say that it held"


def test_parts_are_reached_by_keyboard(report, open_page):
    watched = open_page()
    page = watched.page
    page.goto(report.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the figures"
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash === '#metrics'")  # the address follows the key a moment later
    page.locator("nav a", has_text="Protocol").focus()
    page.keyboard.press("Enter")
    heading = page.locator("#protocol-heading").bounding_box()
    navigation = page.locator("nav").bounding_box()
    assert heading is not None
    assert navigation is not None
    assert heading["y"] >= navigation["y"] + navigation["height"] - 1, "a heading hides behind the navigation"
    details = page.locator("#settings details")
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None


def test_paper_and_screen_differ(report, open_page):
    watched = open_page("laptop", "dark")
    watched.page.goto(report.as_uri())
    dark = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = open_page("laptop", "light")
    light.page.goto(report.as_uri())
    assert dark != light.page.evaluate("getComputedStyle(document.body).backgroundColor")
    watched.page.emulate_media(media="print")
    assert not watched.page.locator("nav").is_visible()
