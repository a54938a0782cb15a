"""What a page shows while the model is loaded, when it is busy, and when it is gone: designed, not accidental."""

from __future__ import annotations

import base64
import json
from urllib.parse import urlsplit

import pytest

from hynt.service.answering import Reply
from tests.browser.hostile_names import hostile_graph
from tests.service.conftest import in_thread
from tests.service.fake_engine import FakeEngine

QUESTION = "/ask?head=Person+1&relation=height&tail=%3F"


ANSWER = {
    "question": "Person 1 · height · ?", "hole": "tail", "kind": "entity", "candidates": 1, "calibrated": False,
    "notes": ["probabilities are not calibrated"],
    "answers": [{"rank": 1, "id": "t0", "name": "Springfield", "probability": 1.0, "score": 0.0, "known": []}],
}  # fmt: skip


class CannedEngine(FakeEngine):
    """Gives one answer to everything."""

    async def exchange(self, kind, jobs):
        await super().exchange(kind, jobs)
        return [Reply(json.dumps(ANSWER).encode()) for _ in jobs]


class LoadingEngine(CannedEngine):
    """Not ready until the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.state.ready, self.state.reason = False, "the model is being loaded"


@pytest.fixture
def loading(browser):
    engine = LoadingEngine()
    with in_thread(hostile_graph(), engine) as site:
        yield engine, site


def complaints_of_status(watched, status: int) -> None:
    """A browser notes by itself that an answer was no success; anything else is a fault."""
    assert all(str(status) in text for text in watched.complaints), watched.complaints
    watched.complaints.clear()


def test_a_question_waits_for_the_model(loading, open_page):
    engine, site = loading
    watched = open_page(host=urlsplit(site.url).netloc)
    answer = watched.page.goto(site.url + QUESTION)
    assert answer.status == 503
    told = watched.page.locator("main").inner_text()
    assert "still being loaded" in told
    assert "asks again by itself" in told
    assert watched.page.locator(".banner").is_visible()
    watched.screenshot("state-loading")
    watched.check_accessibility()
    engine.state.ready, engine.state.reason = True, ""
    watched.page.wait_for_selector("#result[data-state=answered]")
    assert "Probabilities are not calibrated" in watched.page.locator("#result").inner_text()
    assert watched.page.locator(".banner").count() == 0
    complaints_of_status(watched, 503)


def test_facts_can_be_read_while_the_model_is_loaded(loading, open_page):
    engine, site = loading
    watched = open_page("phone", "light", urlsplit(site.url).netloc)
    page = watched.page
    page.goto(f"{site.url}/entity?id=p1")
    assert page.locator("h1").inner_text() == "Person 1"
    page.get_by_label("Search an entity").fill("half typed")
    engine.state.ready = True
    page.wait_for_selector(".banner.done")
    assert page.get_by_label("Search an entity").input_value() == "half typed", "what was typed is kept"


def test_trends_say_that_the_model_is_loaded(loading, open_page):
    _, site = loading
    watched = open_page(host=urlsplit(site.url).netloc)
    answer = watched.page.goto(f"{site.url}/trends?head=p1&relation=height")
    assert answer.status == 503
    assert watched.page.locator("h1").inner_text() == "The model is not ready"
    assert answer.headers["retry-after"]
    complaints_of_status(watched, 503)


def test_without_figures_or_audit_the_pages_say_how_to_make_them(loading, open_page):
    _, site = loading
    page = open_page(host=urlsplit(site.url).netloc).page
    page.goto(f"{site.url}/doubtful")
    assert "hynt audit" in page.locator("main").inner_text()
    page.goto(f"{site.url}/about")
    assert page.locator("h1").inner_text() == "About this run"


def test_a_slow_answer_shows_that_it_is_waited_for(browser, open_page):
    engine = CannedEngine(seconds=1.0)
    with in_thread(hostile_graph(), engine) as site:
        watched = open_page(host=urlsplit(site.url).netloc)
        page = watched.page
        page.goto(f"{site.url}/ask?head=Person+1&relation=height")
        page.get_by_role("button", name="Ask for the tail", exact=True).click()
        page.wait_for_selector("#result[aria-busy=true]")
        watched.screenshot("state-asking", full=False)
        page.wait_for_selector("#result[data-state=answered]:not([aria-busy])")


def test_a_dead_model_is_told_and_asked_again(browser, open_page):
    engine = CannedEngine()
    engine.dead = True
    with in_thread(hostile_graph(), engine) as site:
        watched = open_page(host=urlsplit(site.url).netloc)
        watched.page.goto(site.url + QUESTION)
        assert "asks again by itself" in watched.page.locator("#result").inner_text()
        engine.dead = False
        watched.page.wait_for_selector("#result[data-state=answered]")
        complaints_of_status(watched, 503)


def test_pages_work_behind_a_token(browser):
    token = "a-token-of-some-length"
    with in_thread(hostile_graph(), CannedEngine(), token=token) as site:
        assert site.get("/").status == 401
        given = base64.b64encode(f"anyone:{token}".encode()).decode()
        context = browser.new_context(extra_http_headers={"Authorization": f"Basic {given}"})
        page = context.new_page()
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(site.url + QUESTION)
        assert page.locator("#result").get_attribute("data-state") == "answered"
        page.get_by_label("Head", exact=True).fill("Person 2")
        page.wait_for_selector(".suggestions [role=option]")
        assert page.evaluate("document.styleSheets.length") == 1
        assert complaints == []
        context.close()
