"""Around an entity, doubtful facts and what is decided on them, the run itself: by click and by keyboard."""

from __future__ import annotations

from playwright.sync_api import expect

from hynt.formats.corrections import read_corrections
from tests.browser.addresses import follow, path_of


def test_an_entity_is_narrowed_and_walked_around(visit):
    watched = visit("/entity?id=p1", "phone")
    page = watched.page
    page.wait_for_selector("#around svg.narrow a")
    page.get_by_label("Facts with").press_sequentially("shelbyville")
    page.wait_for_url("**words=shelbyville")
    assert set(page.locator("#facts dt a").all_inner_texts()) <= {"born in", "spouse", "lives in"}
    page.get_by_label("Facts with").fill("")
    page.wait_for_url(lambda url: "words" not in url)
    expect(page.locator("#missing .told")).not_to_contain_text("looks for it")
    assert bool(page.locator("#missing .told").inner_text()) != (page.locator("#missing li").count() > 0)
    node = page.locator("#around svg a", has_text="Shelbyville").first
    node.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Around Shelbyville").wait_for()
    assert page.evaluate("document.activeElement.id") == "around-heading", "who walks by keyboard is taken along"
    assert page.locator("h1").inner_text() == "Person 1"
    watched.check_fits()
    watched.check_accessibility()
    watched.screenshot("walked")
    follow(page, page.get_by_role("link", name="All facts of Shelbyville").click)
    assert page.locator("h1").inner_text() == "Shelbyville"


def test_doubtful_facts_by_click_and_keyboard(visit):
    page = visit("/").page
    follow(page, page.get_by_role("link", name="Doubtful facts").click)
    assert page.locator("#doubts > li").count() == 25
    assert "1 could not be judged" in page.locator("main").inner_text()
    follow(page, page.get_by_role("link", name="number", exact=True).click)
    assert path_of(page) == "/doubtful?kind=number"
    assert "times as far away as the interval reaches" in page.locator("#doubts").inner_text()
    page.get_by_role("link", name="all", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/doubtful")
    page.locator("a[rel=next]").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/doubtful?offset=25")
    assert page.locator("#doubts .doubt-fact").first.inner_text().startswith("26")
    follow(page, page.locator("#doubts a").first.click)
    assert page.url.split("?")[0].endswith("/entity")
    assert page.locator("dd:target").count() == 1, "the fact itself is what one is led to"


def test_decisions_are_kept_and_downloaded(visit, tmp_path):
    watched = visit("/doubtful", "phone", "dark")
    page = watched.page
    right, wrong = page.locator("#doubts > li[data-kind=entity]").nth(0), page.locator("#doubts > li").nth(1)
    right.get_by_role("button", name="It is right").press("Enter")
    wrong.get_by_role("button", name="It is wrong").click()
    number = page.locator("#doubts > li[data-kind=number]").nth(1)
    number.get_by_role("button", name="Change it").press("Enter")
    assert page.evaluate("document.activeElement.value") == "1.7 m", "what the model says is offered"
    number.get_by_role("textbox", name="Height").fill("tall")
    page.keyboard.press("Enter")
    expect(number.get_by_role("alert")).to_have_text("“tall” is not a number or date.")
    number.get_by_role("textbox", name="Height").fill("169 cm")
    page.keyboard.press("Enter")
    link = page.locator("#doubts > li[data-kind=entity]").nth(2)
    link.get_by_role("button", name="Change it").click()
    link.get_by_label("Tail").fill("nobody of that name")
    page.keyboard.press("Enter")
    expect(link.get_by_role("alert")).to_have_text("Nothing in the graph is called that.")
    link.get_by_label("Tail").fill("shelbyville")
    page.keyboard.press("Enter")
    expect(link.get_by_role("button", name="Change it")).to_have_attribute("aria-pressed", "true")
    page.reload()
    assert "You decided on 4: 1 right, 1 wrong, 2 changed." in page.locator("#decisions").inner_text()
    watched.screenshot("decisions")
    watched.check_fits()
    watched.check_accessibility()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download decisions").click()
    downloading.value.save_as(tmp_path / "decisions.jsonl")
    found = read_corrections(tmp_path / "decisions.jsonl")
    assert (found.kept, len([*found.removed()]), len([*found.added()])) == (1, 3, 2)
    assert {str(fact.tail) for fact in found.added() if isinstance(fact.tail, str)} == {"t1"}
    assert [fact.tail.unit for fact in found.added() if not isinstance(fact.tail, str)] == ["cm"]
    page.get_by_role("button", name="Forget them all").click()
    assert "You decided on none yet." in page.locator("#decisions").inner_text()


def test_about_by_click_and_keyboard(visit):
    page = visit("/ask").page
    page.get_by_role("link", name="About").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/about")
    told = page.locator("main").inner_text()
    assert "frequency" in told
    assert "times this split was read" in told
    assert page.locator(".tiles li").count() == 4
