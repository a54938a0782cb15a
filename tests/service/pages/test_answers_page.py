"""What stands below the form: first what the graph holds, then what is new, with guesses folded away."""

from __future__ import annotations

import html
import re

BORN = "head=p2&relation=P19&tail=%3F"
PEOPLE_IN_TOWN = "head=town/0&relation=P1082&tail=%3F"


def _page(service, query):
    return service.get(f"/ask?{query}", Accept="text/html").body.decode()


def test_the_graph_comes_first_and_guesses_are_folded(service):
    page = _page(service, BORN)
    stored, folded = page.index('class="stored"'), page.index("<details")
    assert stored < folded
    told = re.sub(r"<[^>]+>|\s+", " ", page[stored:folded])
    assert "in the graph , train" in told
    assert "the model ranks it" in told
    assert re.search(r"\d+ guesses below 50", page[folded:])
    assert '<span class="badge new">' not in page  # nothing is so probable


def test_a_question_that_lacks_what_all_facts_say_is_offered_it(service):
    said = service.post("/v1/predict", {"head": "town/0", "relation": "P1082", "tail": "?"}).json
    assert [one["relation"] for one in said["missing"]] == ["date"]
    assert said["answers"][0]["low"] is None
    page = _page(service, PEOPLE_IN_TOWN)
    assert "9 of 10" not in page
    offered = said["missing"][0]["offered"]
    assert f"qualifier=date&amp;value={offered}" in page
    answered = _page(service, f"{PEOPLE_IN_TOWN}&qualifier=date&value={offered}")
    assert "in 9 of 10 such questions" in answered


def test_ids_stand_only_beside_names_that_several_have(service):
    """Springfield is a town and a firm, Curaçao is one town."""
    asked = _page(service, "head=p2&relation=born+in&tail=%3F&top=100")
    found = service.get("/?query=Springfield", Accept="text/html").body.decode()
    assert asked.count('<span class="aside">town/0</span>') == 1
    assert ">Curaçao</a></th>" in asked
    assert "town/0 · " in found
    assert "f0 · " in found
    alone = service.get("/?query=Cura", Accept="text/html").body.decode()
    assert "Curaçao" in alone
    assert "town/3 · " not in alone


def test_a_number_has_no_digits_that_its_interval_is_not_sure_of(service):
    page = _page(service, "head=p3&relation=height&tail=%3F")
    shown = re.search(r'<p class="big"><span class="quantity">([^<]*)', page).group(1)
    exact = service.post("/v1/predict", {"head": "p3", "relation": "height", "tail": "?"}).json["answers"][0]
    assert shown == exact["text"]
    assert not re.search(r"\d\.\d{3}", page[page.index('<div class="number-answer">') : page.index("<figure>")])


def test_the_home_page_asks_what_the_run_answers_best(service, predictor):
    from hynt.asking.examples import held_out_examples
    from hynt.service.pages.questions import beginnings

    best = [(one.row, one.position) for one in held_out_examples(predictor)]
    assert best
    questions = beginnings(predictor.graph, best)["questions"]
    page = service.get("/", Accept="text/html").body.decode()
    assert len(questions) == len(best)
    shown = [html.unescape(address) for address in re.findall(r'<li><a href="(/ask\?[^"]*)"', page)]
    assert [one["address"] for one in questions] == shown


def test_why_there_is_no_interval_is_said_once(service):
    page = service.get("/ask?head=town/0&relation=population&tail=%3F", Accept="text/html").body.decode()
    main = page.split("<main")[1]
    assert main.lower().count("there is no interval") == 1
    assert "There is no interval: all 48 training facts of this relation say date, and the question does not" in main
    assert re.search(r"Ask with <a [^>]+>date \d{4}", main), "what would give one is offered"


def test_of_a_thing_of_another_kind_no_interval_is_shown(service):
    main = _page(service, "head=town/1&relation=height&tail=%3F").split("<main")[1]
    assert main.lower().count("there is no interval") == 1
    assert re.search(r"There is no interval: \w+ is unlike the heads of height in training: none of \d+ is ", main)
    assert "Ask with" not in main
    assert "90%" not in main


def test_what_a_qualifier_changes_is_told_in_names(service):
    """Springfield is a town and a firm, so a field holds its id; below it stands its name."""
    page = _page(service, "head=p3&relation=P26&tail=%3F&qualifier=date&value=1993&qualifier=place&value=town/0")
    assert 'value="town/0"' in page
    assert ">without place Springfield<" in page
    assert ">without date 1993<" in page
