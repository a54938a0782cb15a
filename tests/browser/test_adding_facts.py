"""Facts added by hand in a real browser, over a real service that accepts updates."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from hynt.runs.journal import Journal
from tests.browser.addresses import wait_answered
from tests.service.conftest import TOKEN, updating  # noqa: F401 - a fixture


@pytest.fixture
def see(browser, updating):  # noqa: F811
    """Opens an address as somebody whom the browser has asked for the token."""
    from tests.browser.browsing import VIEWS, Watched

    pages = []

    def go(path, view="laptop", scheme="light"):
        width, height = VIEWS[view]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            http_credentials={"username": "", "password": TOKEN},
            reduced_motion="reduce",
        )
        context.set_default_timeout(20_000)
        pages.append(Watched(context.new_page(), urlsplit(updating.url).netloc))
        pages[-1].page.goto(updating.url + path)
        return pages[-1]

    yield go
    for one in pages:
        one.page.context.close()
        one.check()


def fill(page, head=None, relation="", tail="", token=TOKEN):
    for name, text in (("Head", head), ("Relation", relation), ("Tail", tail)):
        if text is not None:
            page.get_by_label(f"{name} of the new fact").fill(text)
            page.keyboard.press("Escape")
    page.get_by_label("Token of this service").fill(token)


def test_a_fact_of_an_entity_is_listed_marked_counted_and_taken_back(see, updating):  # noqa: F811
    watched = see("/entity?id=person+1")
    page, version = watched.page, Journal(updating.run).latest()
    tab = page.locator(".tabs a", has_text="of it").locator(".count")
    count = int(tab.inner_text())
    expect(page.locator("#around svg")).to_be_visible()
    page.locator("#add-fact summary").focus()
    page.keyboard.press("Enter")  # all of it by keyboard
    assert page.get_by_label("Head of the new fact").input_value() == "person 1"
    page.get_by_label("Relation of the new fact").focus()
    page.keyboard.type("kno", delay=20)
    page.wait_for_selector("#add-fact .suggestions [role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "add-tail"
    page.keyboard.type("Zoe", delay=20)
    page.keyboard.press("Escape")
    page.get_by_label("Token of this service").focus()
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("#add-fact .told")).to_have_text(f"Added as version {version + 1}, and counted by the model.")
    listed = page.locator("#facts dd", has_text="Zoe")
    expect(listed.locator(".badge.added")).to_have_text("added, by hand")
    expect(tab).to_have_text(str(count + 1))
    expect(page.locator("#around svg")).to_contain_text("Zoe")
    changed = page.locator(".outcome")
    expect(changed.locator("caption")).to_have_text("How the answer changed: person 1 · knows · ?")
    assert changed.locator("tbody tr").count() >= 5
    assert changed.locator("tbody th", has_text="Zoe").count() == 1
    assert page.get_by_label("Token of this service").input_value() == TOKEN
    watched.screenshot("add-fact", full=True)
    watched.check_accessibility()
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("#add-fact .told")).to_have_text(f"Taken back: version {version + 2}.")
    expect(page.locator("#facts dd", has_text="Zoe")).to_have_count(0)
    expect(page.locator("#around svg")).not_to_contain_text("Zoe")
    assert [one.source for one in Journal(updating.run).versions()[-2:]] == ["by hand", "taken back by hand"]
    page.reload()
    page.locator("#add-fact summary").click()
    assert page.get_by_label("Token of this service").input_value() == ""  # it was kept nowhere


def test_a_number_changes_the_answer_on_the_page(see, updating):  # noqa: F811
    watched = see("/ask?head=person+3&relation=height&tail=%3F", "phone", "dark")
    page = watched.page
    wait_answered(page)
    page.locator("#add-fact summary").click()
    fill(page, None, "height", "193")
    page.get_by_role("button", name="Add a qualifier to the fact").click()
    page.get_by_label("Relation of qualifier 1 of the new fact").fill("year")
    page.get_by_label("Value of qualifier 1 of the new fact").fill("2011")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator("#add-fact .told")).to_have_text(re.compile("counted by the model"))
    assert page.locator(".outcome tbody th").all_inner_texts() == ["number", "interval"]
    wait_answered(page)
    expect(page.locator(".stored .badge.added").first).to_contain_text("added")
    watched.screenshot("add-fact-phone-dark", full=True)
    watched.check_fits()
    watched.check_accessibility()
    fill(page, None, "shoe size", "43.5")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator("#add-fact .told")).to_have_text(re.compile("counted by the model"))
    journal = Journal(updating.run)
    (fact,) = journal.change(journal.versions()[-1]).added
    assert fact.tail.value == 43.5  # a number of a new relation, and no entity of that name


def test_what_does_not_fit_is_said_and_nothing_changes(see, updating):  # noqa: F811
    watched = see("/entity?id=person+2")
    page, version = watched.page, Journal(updating.run).latest()
    page.locator("#add-fact summary").click()
    alert = page.locator("#add-fact [role=alert]")
    fill(page, "person 2", "height", "")
    page.get_by_role("button", name="Add it").click()
    expect(alert).to_have_text("The tail is missing.")
    assert page.evaluate("document.activeElement.id") == "add-tail"
    fill(page, "person 2", "height", "1.8 m")
    page.get_by_role("button", name="Add it").click()
    expect(alert).to_contain_text("'height' has no unit, but 'm' was given.")
    fill(page, "person 2", "height", "180", token="not-the-token-at-all")
    page.get_by_role("button", name="Add it").click()
    expect(alert).to_contain_text("The token is wrong.")
    assert Journal(updating.run).latest() == version
    assert all(re.search("422|401", one) for one in watched.complaints)
    watched.complaints.clear()  # a browser says by itself that requests were refused


def test_it_is_offered_only_where_it_is_accepted(visit):
    assert visit("/entity?id=p1").page.locator("#add-fact").count() == 0


def test_a_quantity_typed_for_a_new_relation_is_told_of_as_a_number(see, updating):  # noqa: F811
    """A relation with one number cannot be asked for yet: that is said, and nobody waits for it."""
    watched = see("/entity?id=person+1")
    page = watched.page
    page.locator("#add-fact summary").click()
    fill(page, relation="arm span", tail="1,850 mm")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator("#add-fact .told")).to_contain_text("counted by the model", timeout=20_000)
    expect(page.locator("#add-fact .outcome")).to_contain_text("fewer than 8 different ones")
    expect(page.locator("#facts")).to_contain_text("1.85 m")
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("#add-fact .told")).to_contain_text("Taken back", timeout=20_000)
    expect(page.locator("#facts")).not_to_contain_text("1.85 m")
    expect(page.get_by_role("button", name="Add it")).to_be_enabled(timeout=20_000)  # the model was asked once more
    assert all("422" in one for one in watched.complaints)
    watched.complaints.clear()
