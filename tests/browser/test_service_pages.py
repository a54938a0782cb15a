"""Every state of the pages of a served run: it reads well, keeps names what they are, and needs no scripts."""

from __future__ import annotations

import random
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.browser.addresses import HEIGHT, LINK, TREND, WEDDING, asked, follow, wait_answered
from tests.browser.hostile_names import ATTACKS

PAGES = {
    "home": "/",
    "search": "/?query=person",
    "nothing": "/?query=zzzzqqqq",
    "entity": "/entity?id=p1",
    "relations": "/relations",
    "relation": "/relation?id=height",
    "ask": "/ask",
    "incomplete": "/ask?head=Person+1&tail=%3F",
    "link": LINK,
    "qualifiers": WEDDING,
    "number": HEIGHT,
    "unknown": "/ask?head=Persn+1&relation=height&tail=%3F",
    "trends": "/trends",
    "trend": TREND,
    "several": f"{TREND}&head=Person+2&head=Person+3",
    "not-a-trend": "/trends?head=Person+1&relation=spouse",
    "doubtful": "/doubtful",
    "about": "/about",
}


@pytest.mark.parametrize("view, scheme", [("laptop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_every_state_reads_well(visit, name, view, scheme):
    watched = visit(PAGES[name], view, scheme)
    assert watched.page.locator("h1").count() == 1
    assert watched.page.locator("main").inner_text().strip()
    watched.screenshot(f"page-{name}-{view}-{scheme}")
    watched.check_fits()
    watched.check_accessibility()


def test_a_phone_shows_what_a_laptop_shows(visit):
    page = visit(LINK, "phone").page
    for name in ("Search", "Ask", "Trends", "Doubtful facts", "About"):  # none beyond the edge
        box = page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    page.locator("details.guesses summary").click()
    assert page.locator(".answers tbody svg.share").first.bounding_box()["width"] > 40
    for path in (LINK, "/doubtful"):
        page.goto(page.url.split("/ask")[0] + path)
        for table in page.locator("main .scroll").all():
            whole, shown = table.evaluate("one => [one.scrollWidth, one.clientWidth]")
            assert whole <= shown, f"a table of {path} is cut off at the side"


# ---------------------------------------------------------------------- what must hold everywhere


@pytest.mark.parametrize("index", range(0, 40, 4))
def test_names_stay_text(visit, index):
    watched = visit(f"/entity?id=p{index}")
    page = watched.page
    attack = ATTACKS[index // 4 % len(ATTACKS)]
    shown = page.locator("h1").inner_text()
    if attack.isprintable() and "\u202e" not in attack:
        assert shown == attack
    assert "owned" not in page.title() or attack in page.title()
    assert page.locator("main img, main script, main iframe, main h1 h1").count() == 0
    assert page.locator("h1").count() == 1
    follow(page, page.locator(".leads a").first.click)
    wait_answered(page)
    assert page.locator("h1").inner_text() == "Ask for what is missing"


def test_pages_work_without_scripts(service, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{service.url}/ask?head=Person+1&relation=height")
    follow(page, page.locator("button[name=blank][value=tail]").click)
    assert asked(page)["tail"] == ["?"]
    assert page.locator("#result").get_attribute("data-state") == "answered"
    follow(page, page.locator("button[name=add]").click)
    page.locator("input[name=qualifier]").fill("year")
    page.locator("input[name=value]").fill("2003")
    follow(page, lambda: page.locator("input[name=value]").press("Enter"))
    assert page.locator(".changes tbody tr").count() == 2
    follow(page, page.locator("button[name=remove]").click)
    assert "qualifier" not in asked(page)
    take = page.locator(".take summary")
    take.press("Enter")
    assert page.get_by_role("link", name="CSV").is_visible()
    offered = page.locator("button[data-copy], .decide, .walker, .reading, .endpoint .actions, #bulk")
    assert not any(one.is_visible() for one in offered.all()), "what needs scripts is not offered without them"
    page.goto(f"{service.url}{TREND}")
    assert page.locator("figure.trend svg .band").count() == 1
    assert not any(one.is_visible() for one in offered.all())
    page.goto(f"{service.url}/docs")
    for one in page.locator(".endpoint > summary").all():
        one.press("Enter")
    assert not any(one.is_visible() for one in offered.all())
    assert "Trying an endpoint here needs scripts" in page.locator("main").inner_text()
    page.goto(f"{service.url}/bulk")
    assert not any(one.is_visible() for one in offered.all())
    assert "needs scripts" in page.locator("main").inner_text()
    follow(page, page.get_by_role("link", name="ask one question at a time").click)
    assert page.locator("h1").inner_text() == "Ask for what is missing"
    page.goto(f"{service.url}/doubtful")
    assert not any(one.is_visible() for one in offered.all())
    assert "Deciding on them here needs scripts" in page.locator("main").inner_text()
    page.goto(f"{service.url}/entity?id=p1")
    follow(page, page.get_by_role("link", name="Ask the model what it misses about Person 1").click)
    assert page.locator("#missing li").count() or "Nothing that the model is sure enough of" in page.inner_text("main")
    follow(page, page.get_by_role("link", name="All facts of Person 1").click)
    follow(page, page.get_by_role("link", name="Draw the facts around Person 1").click)
    follow(page, page.locator("#around svg a", has_text="Shelbyville").first.click)
    assert page.locator("h1").inner_text() == "Shelbyville"
    context.close()


def test_policy_forbids_what_is_inline(service):
    answer = service.get("/ask")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy
    body = answer.body.decode()
    assert not re.findall(r"<script(?![^>]*\bsrc=)", body)
    assert not re.findall(r"\sstyle=|\son[a-z]+=|<style", body)
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", body)


def test_odd_addresses_never_break_a_page(service):
    chance = random.Random(7)
    odd = [
        "",
        "?",
        "Person 1",
        "height",
        "year",
        "2003",
        "1e400",
        "nan",
        "-0043",
        "80 kg",
        "<b>",
        "\x00",
        "\u202e",
        "²",
        "a" * 900,
        "-1",
        "9" * 30,
        "0r",
        "1v",
        "head",
        "number",
        "{{ 7 }}",
        "%",
    ]
    fields = {
        "/": ["query"],
        "/entity": ["id", "offset", "position"],
        "/relations": ["query", "offset"],
        "/relation": ["id"],
        "/missing": ["id"],
        "/trends": ["head", "head", "relation", "over"],
        "/ask": ["head", "relation", "tail", "qualifier", "value", "top", "candidates", "blank", "remove"],
        "/doubtful": ["kind", "offset"],
    }
    for _ in range(150):
        path = chance.choice(list(fields))
        given = [(name, chance.choice(odd)) for name in fields[path] if chance.random() < 0.6]
        answer = service.get(f"{path}?{urlencode(given)}", Accept="text/html")
        assert answer.status in (200, 303, 404, 422), (path, given)
        if answer.status != 303:
            assert answer.headers["content-type"] == "text/html; charset=utf-8", (path, given)


def test_scripts_are_small_and_short():
    folder = Path(__file__).parents[2] / "src" / "hynt" / "service" / "pages" / "static"
    for path in folder.glob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 250, path.name
        assert not any("eval(" in line or "innerHTML" in line for line in lines), path.name
