"""Searching, asking and following a number, by click and by keyboard, in a real browser over a real service."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.addresses import HEIGHT, TREND, WEDDING, asked, follow, path_of, wait_answered

# ---------------------------------------------------------------------- 1: search an entity, read its facts


def test_search_by_click(visit):
    page = visit("/").page
    page.get_by_label("Search an entity").fill("Person 1")
    page.locator(".suggestions [role=option]", has_text=re.compile(r"^Person 1\b")).first.click()
    page.wait_for_url("**/entity?id=p1")
    assert page.locator("h1").inner_text() == "Person 1"
    facts = page.locator("main").inner_text()
    assert "121 cm" in facts
    assert "employer <b>" in facts
    assert re.search(r"year 200\d", facts)
    follow(page, page.locator(".relations a", has_text="Shelbyville").first.click)
    assert page.locator("h1").inner_text() == "Shelbyville"
    page.go_back()
    assert path_of(page) == "/entity?id=p1"


def test_search_by_keyboard(visit):
    watched = visit("/")
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_label("Search an entity").focus()
    page.keyboard.type("person 3", delay=20)
    page.wait_for_selector(".suggestions [role=option]")
    field = page.get_by_label("Search an entity")
    assert field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    chosen = page.locator(".suggestions [aria-selected=true]")
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    watched.screenshot("completion", full=False)
    watched.check_accessibility()
    page.keyboard.press("Escape")
    assert page.locator(".suggestions").count() == 0
    page.keyboard.press("Enter")
    page.wait_for_url("**/?query=person+3")
    page.locator(".results a").first.focus()
    follow(page, lambda: page.keyboard.press("Enter"))
    assert page.locator("h1").inner_text() == "Person 3"


def test_shared_and_unknown_names_are_met_with_choices(visit, open_page, service):
    page = visit("/?query=Persn").page
    assert "Person" in page.locator(".results").inner_text()
    watched = open_page(host=urlsplit(service.url).netloc)
    answer = watched.page.goto(f"{service.url}/entity?id=Persn+1")
    assert answer.status == 404
    assert "no entity called 'Persn 1'" in watched.page.locator("main").inner_text()
    follow(watched.page, watched.page.locator(".chips a").first.click)
    assert watched.page.locator("h1").inner_text().startswith("Person 1")
    assert len(watched.complaints) == 1
    assert "404" in watched.complaints.pop(), "a browser says by itself that a page was not found"


# ---------------------------------------------------------------------- 2: ask, with completion


def test_ask_by_click(visit):
    watched = visit("/ask")
    page = watched.page
    page.get_by_label("Head", exact=True).fill("Person 1")
    page.locator(".suggestions [role=option]").first.click()
    page.get_by_label("Relation", exact=True).fill("emp")
    page.locator(".suggestions [role=option]", has_text="employer").click()
    page.get_by_role("button", name="Ask for the tail").click()
    wait_answered(page)
    stored = page.locator(".stored .known").count()
    assert stored == 1, "what the graph holds comes first"
    shown = page.locator("#result").inner_text()
    page.reload()
    assert page.locator("#result").inner_text() == shown, "the address says all that is shown"
    page.locator("details.guesses summary").click()
    rows = page.locator("table.answers tbody tr")
    assert rows.count() == 10 - stored
    shares = [
        float(re.sub(r"[^\d.]", "", text)) for text in page.locator("table.answers td:nth-child(3)").all_inner_texts()
    ]
    assert shares == sorted(shares, reverse=True)
    assert page.locator("table.answers .share").count() == 10 - stored
    assert set(page.locator("table.answers td:last-child").all_inner_texts()) <= {"new", "guess"}
    assert asked(page)["tail"] == ["?"]
    page.get_by_label("only new ones").check()
    page.wait_for_url("**candidates=unknown**")
    wait_answered(page)
    assert page.locator("table.answers .known").count() == 0
    page.go_back()
    expect(page.get_by_label("only new ones")).not_to_be_checked()
    wait_answered(page)


def test_ask_by_keyboard(visit):
    page = visit("/ask").page
    page.get_by_label("Head", exact=True).focus()
    page.keyboard.type("person 2", delay=20)
    page.wait_for_selector(".suggestions [role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Ask for the head"
    page.keyboard.press("Tab")
    page.keyboard.type("spou", delay=20)
    page.wait_for_selector(".suggestions [role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("?")
    page.keyboard.press("Enter")
    wait_answered(page)
    assert page.locator("#result h2").first.inner_text() == "Person 2 · spouse · ?"
    told = page.locator("#told").inner_text()
    assert re.fullmatch(r"In the graph: Person \d+\. New: (none|.* percent)\.", told)


@pytest.mark.parametrize("place", ["head", "relation", "relation of qualifier 1", "value of qualifier 2"])
def test_any_part_can_be_asked_for(visit, place):
    page = visit(WEDDING).page
    page.get_by_role("button", name=f"Ask for the {place}", exact=True).click()
    page.get_by_label("Tail", exact=True).fill("Person 9")
    page.keyboard.press("Enter")
    wait_answered(page)
    assert page.locator("table.answers tbody tr").count() > 1


def test_number_stands_on_the_spread_of_its_relation(visit):
    page = visit(HEIGHT).page
    assert re.fullmatch(r"[\d.]+ cm", page.locator(".big").inner_text())
    assert page.locator(".number-answer svg .bar").count() > 5
    answer, span = page.locator(".number-answer svg .answer"), page.locator(".number-answer svg .span")
    left, right = (float(span.get_attribute(name)) for name in ("x", "width"))
    assert left < float(answer.get_attribute("x1")) < left + right
    assert "in 9 of 10 such questions" in page.locator(".number-answer").inner_text()


def test_a_field_of_numbers_says_what_it_takes(visit):
    page = visit(HEIGHT).page
    page.get_by_label("Value of qualifier 1", exact=True).fill("20")
    assert "A date: 1995" in page.locator(".suggestions").inner_text()
    page.get_by_label("Tail", exact=True).fill("15")
    assert "A number with its unit; without one, the unit is m" in page.locator(".suggestions").inner_text()


def test_empty_fields_of_trends_suggest_what_they_may_hold(visit):
    page = visit("/trends").page
    suggested = page.locator(".suggestions [role=option] > span:first-child")
    page.get_by_label("Relation", exact=True).focus()
    suggested.first.wait_for()
    assert set(suggested.all_inner_texts()) == {"height"}, "none that holds entities"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_label("Head", exact=True).focus()
    suggested.first.wait_for()
    assert suggested.count() > 1


def test_an_empty_field_says_what_it_may_hold(visit):
    page = visit("/ask?head=Person+1&tail=%3F").page
    field = page.get_by_label("Relation", exact=True)
    field.focus()
    page.wait_for_selector(".suggestions [role=option]")
    assert "height" in page.locator(".suggestions").inner_text()
    field.press("Escape")
    assert page.locator(".suggestions").count() == 0
    field.press("ArrowDown")  # and asked for again by hand
    page.locator(".suggestions [role=option]", has_text="spouse").click()
    wait_answered(page)
    page.get_by_role("button", name="Add a qualifier").click()
    page.get_by_label("Relation of qualifier 1", exact=True).focus()
    answer = page.locator(".asked").inner_text()
    page.locator(".suggestions [role=option]", has_text="place").click()
    page.locator(".pending", has_text="Still to fill in: value of qualifier 1.").wait_for()
    assert page.locator(".asked").inner_text() == answer, "half a qualifier takes no answer away"
    page.get_by_label("Value of qualifier 1", exact=True).focus()
    page.wait_for_selector(".suggestions [role=option]")
    page.locator(".suggestions [role=option]", has_text="Shelbyville").click()
    page.wait_for_url("**value=Shelbyville**")
    assert page.locator(".pending").count() == 0


def test_an_unknown_name_offers_what_may_be_meant(visit):
    page = visit("/ask?head=Persn+1&relation=height&tail=%3F").page
    field = page.get_by_label("Head", exact=True)
    assert field.get_attribute("aria-invalid") == "true"
    assert "no entity called" in page.locator(f"#{field.get_attribute('aria-describedby')}").inner_text()
    follow(page, page.locator("#result .chips a").first.click)
    wait_answered(page)
    assert asked(page)["head"][0].startswith("p")


# ---------------------------------------------------------------------- 3: add or remove a qualifier


def test_qualifiers_change_the_answer_by_click(visit):
    watched = visit("/ask?head=Person+1&relation=height&tail=%3F")
    page = watched.page
    wait_answered(page)
    before = page.locator(".big").inner_text()
    assert page.locator(".changes").count() == 0
    page.get_by_role("button", name="Add a qualifier").click()
    page.get_by_label("Relation of qualifier 1", exact=True).fill("yea")
    page.locator(".suggestions [role=option]", has_text="year").click()
    page.get_by_label("Value of qualifier 1", exact=True).fill("2006")
    page.get_by_label("Value of qualifier 1", exact=True).press("Enter")
    page.wait_for_selector(".changes")
    assert asked(page)["qualifier"] == ["year"]
    assert page.locator(".changes tbody tr").count() == 2
    assert page.locator(".changes tbody tr:first-child td").first.inner_text() == page.locator(".big").inner_text()
    watched.screenshot("qualifier-added")
    page.get_by_role("button", name="Remove qualifier 1").click()
    page.wait_for_url(lambda url: "qualifier" not in url)
    wait_answered(page)
    assert page.locator(".big").inner_text() == before
    page.go_back()
    expect(page.get_by_label("Value of qualifier 1", exact=True)).to_have_value("2006")
    wait_answered(page)


def test_qualifiers_change_the_answer_by_keyboard(visit):
    page = visit(WEDDING).page
    rows = page.locator(".changes tbody th").all_inner_texts()
    assert rows == ["as asked", "without year 1991", "without place Shelbyville", "without all qualifiers"]
    page.get_by_role("button", name="Remove qualifier 1").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "1991" not in url)
    wait_answered(page)
    assert asked(page)["qualifier"] == ["place"]
    assert page.get_by_label("Value of qualifier 1", exact=True).input_value() == "Shelbyville", (
        "what is left is numbered anew"
    )
    assert page.evaluate("document.activeElement.name") == "add", "the focus is not lost with the row"
    page.locator(".changes a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/ask?head=Person+1&relation=spouse&tail=%3F")
    wait_answered(page)


def test_what_mattered_is_told_on_request(visit):
    watched = visit(WEDDING)
    page = watched.page
    follow(page, page.get_by_role("link", name="What mattered to this answer?").click)
    assert asked(page)["why"] == ["1"]
    parts = page.locator("table.why tbody th").all_inner_texts()
    assert any("year 1991" in part and "qualifier 1 removed" in part for part in parts)
    watched.screenshot("what-mattered")
    watched.check_accessibility()
    page.get_by_role("button", name="Remove qualifier 1").click()
    page.wait_for_url(lambda url: "1991" not in url)
    wait_answered(page)
    assert not any("1991" in part for part in page.locator("table.why tbody th").all_inner_texts())
    assert asked(page)["why"] == ["1"], "what was opened stays open"


# ---------------------------------------------------------------------- 4: trends


def test_trend_by_click(visit):
    page = visit("/trends").page
    page.get_by_label("Head", exact=True).fill("Person 1")
    page.locator(".suggestions [role=option]").first.click()
    page.get_by_label("Relation").fill("hei")
    page.locator(".suggestions [role=option]", has_text="height").click()
    follow(page, page.get_by_role("button", name="Draw").click)
    page.wait_for_selector("figure.trend svg .band")
    assert path_of(page).startswith("/trends?head=Person+1")
    chart = page.locator("figure.trend svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    first = page.locator(".reading").inner_text()
    assert re.match(r"200\d.*: [\d.]+ cm, between [\d.]+ cm and [\d.]+ cm", first)
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.5)
    assert page.locator(".reading").inner_text() != first
    assert chart.locator(".trained").count() + chart.locator(".held").count() == 7


def test_trend_of_a_chosen_series(visit):
    page = visit(f"{TREND}&qualifier=place&value=Shelbyville").page
    assert page.get_by_label("Only with").input_value() == "place"
    assert "place Shelbyville" in page.locator("figure.trend figcaption").inner_text()


@pytest.mark.parametrize(
    "path, label, offered",
    [
        ("/trends?head=Person+1&head=Persn+2&relation=height", "Head 2", "Person 2"),
        ("/trends?head=Person+1&relation=heigt", "Relation", "height"),
        ("/trends?head=Person+1&relation=spouse", "Relation", "height"),
    ],
)
def test_a_trend_that_cannot_be_drawn_says_which_field(visit, path, label, offered):
    page = visit(path).page
    field = page.get_by_label(label, exact=True)
    assert field.get_attribute("aria-invalid") == "true"
    told = page.locator(f"#{field.get_attribute('aria-describedby')}").inner_text()
    assert told == page.locator("#result strong").inner_text()
    follow(page, page.locator("#result .chips a", has_text=offered).first.click)
    assert page.locator("figure.trend").count() >= 1
    assert asked(page)["head"][0] == "Person 1"


def test_heads_beyond_six_are_named(visit):
    page = visit(TREND + "".join(f"&head=Person+{number}" for number in (2, 3, 5, 6, 7, 9))).page
    assert page.locator("figure.trend").count() == 6
    assert page.locator("#result .notice").inner_text() == "Six heads are drawn at most. Left out: Person 9."


def test_trend_by_keyboard(visit):
    watched = visit(TREND)
    page = watched.page
    slider = page.get_by_role("slider")
    slider.focus()
    seen = [slider.get_attribute("aria-valuetext")]
    for key in ("ArrowRight", "PageUp", "End", "ArrowLeft", "Home"):
        page.keyboard.press(key)
        seen.append(slider.get_attribute("aria-valuetext"))
    assert seen[0] == seen[-1]
    assert len(set(seen)) == 5
    assert page.locator(".reading").inner_text() == seen[-1]
    assert float(page.locator("figure.trend .here").get_attribute("cx")) > 0
    watched.screenshot("trend-read")
    summary = page.locator("figure.trend summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("figure.trend table.curve tbody tr").count() == int(slider.get_attribute("aria-valuemax")) + 1
