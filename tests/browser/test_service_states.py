"""What a page shows while the model is loaded, when it is busy, and when it is gone: designed, not accidental."""

from __future__ import annotations

import json
import shutil
from urllib.parse import urlsplit

import pytest

from hynt.service.inference.answering import Reply
from tests.browser.browsing import Watched
from tests.browser.hostile_names import hostile_graph
from tests.service.conftest import in_thread
from tests.service.inference.fake_engine import FakeEngine

QUESTION = "/ask?head=Person+1&relation=height&tail=%3F"


ANSWER = {
    "question": "Person 1 · height · ?",
    "hole": "tail",
    "kind": "entity",
    "candidates": 1,
    "calibrated": False,
    "notes": ["probabilities are not calibrated"],
    "missing": [],
    "answers": [
        {"rank": 1, "id": "t0", "name": "Springfield", "probability": 1.0, "score": 0.0, "known": [], "new": True}
    ],
    "stored": [],
    "stored_total": 0,
    "new_from": 0.5,
}


PROPOSED = {
    "entity": {"id": "p1", "name": "Person 1", "type": "person"},
    "proposals": [
        {
            "relation": "P19",
            "sentence": "Person 1 · born in · Springfield",
            "probability": 0.9,
            "share": 0.8,
            "peers": 39,
        }
    ],
}


class CannedEngine(FakeEngine):
    """Gives one answer to all questions, and proposes one fact."""

    async def exchange(self, kind, jobs):
        await super().exchange(kind, jobs)
        return [Reply(json.dumps(PROPOSED if kind == "propose" else ANSWER).encode()) for _ in jobs]


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
    page.wait_for_selector("#missing li")
    assert "90.0\u00a0% · 80\u00a0% of 39 like it have one" in page.locator("#missing li").inner_text()


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


def test_a_run_that_was_not_measured_shows_its_validation(browser, open_page, hostile_run, tmp_path):
    # A test of the report may have measured the run that all share.
    run = shutil.copytree(hostile_run, tmp_path / "run", ignore=shutil.ignore_patterns("measurements-*"))
    with in_thread(hostile_graph(), CannedEngine(), run=run) as site:
        watched = open_page("phone", "dark", urlsplit(site.url).netloc)
        page = watched.page
        page.goto(f"{site.url}/about")
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        links = next(line for line in reversed(lines) if "validation" in line)["validation"]["link"]["all"]
        told = page.locator("main").inner_text()
        assert "On the validation split, at epoch" in told
        assert f"{links['mrr']:.4f}" in told
        assert f"hynt report {run} --out report.html" in told
        watched.screenshot("state-not-measured")
        watched.check_accessibility()
        watched.check_fits()


def test_a_graph_without_numbers_has_no_trends_to_offer(browser, open_page):
    from hynt.formats.from_python import graph_from_facts

    graph = graph_from_facts({"train": [("a", "knows", "b"), ("b", "knows", "c")], "valid": [], "test": []})
    with in_thread(graph, CannedEngine()) as site:
        watched = open_page(host=urlsplit(site.url).netloc)
        for path in ("/", "/ask", "/about", "/doubtful"):
            assert watched.page.goto(site.url + path).status == 200
        watched.page.goto(f"{site.url}/trends")
        assert "there may be nothing to draw" in watched.page.locator("#result").inner_text()
        watched.check_accessibility()


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


TOKEN = "a-token-of-some-length"


def test_a_service_that_is_gone_is_told_and_waited_for(browser, open_page):
    with in_thread(hostile_graph(), CannedEngine()) as site:
        watched = open_page(host=urlsplit(site.url).netloc)
        page = watched.page
        page.goto(site.url + QUESTION)
        page.route("**/*", lambda route: route.abort("connectionrefused"))
        page.get_by_label("Head", exact=True).fill("Person 2")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_selector("#result[data-state=unreachable]")
        assert "The service cannot be reached." in page.locator("#result").inner_text()
        assert "Person+2" in page.url, "what was asked is not lost"
        assert page.get_by_label("Head", exact=True).input_value() == "Person 2"
        watched.screenshot("state-unreachable", full=False)
        watched.check_accessibility()
        page.unroute("**/*")
        page.wait_for_selector("#result[data-state=answered]")
        assert "Springfield" in page.locator("#result").inner_text()
        assert all("ERR_CONNECTION_REFUSED" in text for text in watched.complaints), watched.complaints
        watched.complaints.clear()


@pytest.fixture
def with_token(browser):
    with in_thread(hostile_graph(), CannedEngine(), token=TOKEN) as site:
        yield site


class Prompted:
    """A person whom the browser asks for a name and a password: gives one password after the other, then gives up."""

    def __init__(self, browser, site, *passwords: str) -> None:
        self.passwords, self.prompts = list(passwords), []
        context = browser.new_context(color_scheme="light" if passwords else "dark")
        self.watched = Watched(context.new_page(), urlsplit(site.url).netloc)
        self.browser = context.new_cdp_session(self.watched.page)
        self.browser.on("Fetch.requestPaused", lambda event: self._go_on("Fetch.continueRequest", event))
        self.browser.on("Fetch.authRequired", self._prompted)
        self.browser.send("Fetch.enable", {"handleAuthRequests": True, "patterns": [{"urlPattern": "*"}]})

    def _prompted(self, event) -> None:
        self.prompts.append((event["authChallenge"]["scheme"], event["authChallenge"]["realm"]))
        if self.passwords:
            given = {"username": "anyone", "password": self.passwords.pop(0), "response": "ProvideCredentials"}
        else:
            given = {"response": "CancelAuth"}
        self._go_on("Fetch.continueWithAuth", event, authChallengeResponse=given)

    def _go_on(self, how: str, event, **more) -> None:
        self.browser.send(how, {"requestId": event["requestId"], **more})


def test_the_right_token_opens_every_page(with_token, browser):
    person = Prompted(browser, with_token, "a-wrong-one-first", TOKEN)
    page = person.watched.page
    assert page.goto(with_token.url + QUESTION).status == 200
    assert person.prompts == [("basic", "hynt")] * 2
    assert page.locator("#result").get_attribute("data-state") == "answered"
    page.get_by_label("Head", exact=True).fill("Person 2")
    page.wait_for_selector(".suggestions [role=option]")  # scripts are let in as well
    page.goto(f"{with_token.url}/about")
    assert page.locator("h1").inner_text() == "About this run"
    assert len(person.prompts) == 2, "asked once, not for each page"
    person.watched.check()
    page.context.close()


@pytest.mark.parametrize("passwords, told", [([], "A token is required."), (["wrong"] * 2, "The token is wrong.")])
def test_without_the_token_a_page_says_what_to_do(passwords, told, with_token, browser):
    person = Prompted(browser, with_token, *passwords)
    watched, page = person.watched, person.watched.page
    answer = page.goto(with_token.url + QUESTION)
    assert answer.status == 401
    assert len(person.prompts) == len(passwords) + 1
    assert page.locator("h1").inner_text() == "This service asks for a token"
    words = page.locator("main").inner_text()
    assert told in words
    assert "The password is the token" in words
    assert "Springfield" not in page.content()
    assert page.evaluate("document.styleSheets[0].cssRules.length") > 50
    watched.screenshot("state-token-" + ("wrong" if passwords else "wanted"))
    watched.check_accessibility()
    watched.check_fits()
    complaints_of_status(watched, 401)
    person.passwords.append(TOKEN)
    page.get_by_role("link", name="Enter the token").press("Enter")
    page.get_by_role("heading", name="Explore").wait_for()
    watched.check()
    page.context.close()
