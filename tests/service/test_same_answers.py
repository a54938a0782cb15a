"""The service gives the library's answers, to the last digit: alone, in a batch, and among many others."""

from __future__ import annotations

import html
import json
import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

from hynt import Client, Run
from hynt.cli.application import run as command_line

QUESTIONS = [
    {"head": "p0", "relation": "born in", "tail": "?"},
    {"head": "?", "relation": "P19", "tail": "town/1", "top": 1000},
    {"head": "p3", "relation": "?", "tail": "town/1", "top": 2},
    {"head": "p3", "relation": "height", "tail": "?"},
    {"head": "p3", "relation": "height", "tail": "?", "level": 0.5},
    {"head": "town/1", "relation": "height", "tail": "?"},
    {"head": "p3", "relation": "?", "tail": "160 cm"},
    {"head": "town/2", "relation": "population", "tail": "?", "qualifiers": [{"relation": "date", "value": 1993.5}]},
    {
        "head": "p1",
        "relation": "spouse",
        "tail": "?",
        "candidates": ["type", "unknown"],
        "qualifiers": [{"relation": "date", "value": "1991"}, {"relation": "place", "value": "town/1"}],
    },
    {"head": "p1", "relation": "spouse", "tail": "p8", "qualifiers": [{"relation": "date", "value": "?"}]},
    {"head": "p1", "relation": "spouse", "tail": "p8", "qualifiers": [{"relation": "?", "value": "Ogdenville"}]},
    {"head": "p1", "relation": "employer", "tail": "?", "only": ["Globex", "f0"]},
]


def from_library(predictor, question) -> str:
    wishes = [*question.get("candidates", ()), *([question["only"]] if "only" in question else [])]
    answers = predictor.predict(
        head=question["head"],
        relation=question["relation"],
        tail=question["tail"],
        qualifiers=[(pair["relation"], pair["value"]) for pair in question.get("qualifiers", ())],
        top=question.get("top", 10),
        candidates=wishes,
        level=question.get("level", 0.9),
    )
    return json.dumps(answers.to_dict(), ensure_ascii=False)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"{question['relation']}-{question['tail']}")
def test_one_question(question, service, predictor):
    found = service.predict(**question)
    assert found.status == 200, found.body
    assert found.body.decode() == from_library(predictor, question)


def test_a_batch(service, predictor):
    found = service.post("/v1/predict", {"questions": QUESTIONS})
    assert found.json == {"results": [json.loads(from_library(predictor, question)) for question in QUESTIONS]}


def test_many_at_once(service, predictor):
    expected = {number: from_library(predictor, question) for number, question in enumerate(QUESTIONS)}

    def asked(number):
        return number, service.predict(**QUESTIONS[number % len(QUESTIONS)]).body.decode()

    with ThreadPoolExecutor(16) as clients:
        found = list(clients.map(asked, range(4 * len(QUESTIONS))))
    assert all(body == expected[number % len(QUESTIONS)] for number, body in found)
    sizes = service.get("/metrics").body.decode()
    alone = next(line for line in sizes.splitlines() if line.startswith('hynt_batch_size_bucket{le="1.0"}'))
    total = next(line for line in sizes.splitlines() if line.startswith("hynt_batch_size_count"))
    assert float(alone.split()[1]) < float(total.split()[1])  # some were answered together


FOUR_WAYS = {
    "what the graph holds comes first": {"head": "p2", "relation": "born in", "tail": "?"},
    "a number has the unit that people read": {"head": "p3", "relation": "height", "tail": "?"},
    "a question unlike any stored one is told so": {"head": "town/0", "relation": "population", "tail": "?"},
    "what no fact says is told so": {
        "head": "p3",
        "relation": "height",
        "tail": "?",
        "qualifiers": [{"relation": "date", "value": "1993"}],
    },
    "ranked answers tell it too": {"head": "p3", "relation": "spouse", "tail": "?"},
    "asked as it should be, it has an interval": {
        "head": "town/0",
        "relation": "population",
        "tail": "?",
        "qualifiers": [{"relation": "date", "value": "1993"}],
    },
}


OFFERED = {
    "a question unlike any stored one is told so": ["2007"],
    "ranked answers tell it too": ["1993", "Springfield"],
}


@pytest.mark.parametrize("name", FOUR_WAYS)
def test_the_command_line_python_http_and_the_page_say_the_same(name, service, predictor, capfd):
    """What the graph holds, the answer with its digits, unit and ends, and what the question lacks."""
    question = FOUR_WAYS[name]
    said = json.loads(from_library(predictor, question))
    pairs = [(pair["relation"], pair["value"]) for pair in question.get("qualifiers", ())]
    asked = predictor.predict((*(question[part] for part in ("head", "relation", "tail")), pairs))
    parts = [f"--{part}={question[part]}" for part in ("head", "relation", "tail")]
    parts += [f"--qualifier={relation}={value}" for relation, value in pairs]
    assert command_line(["predict", str(predictor.saved.path), *parts]) == 0
    address = {part: question[part] for part in ("head", "relation", "tail")}
    address |= {key: pairs[0][at] for at, key in enumerate(("qualifier", "value")) if pairs}
    page = service.get(f"/ask?{urlencode(address)}", Accept="text/html").body.decode()
    surfaces = {
        "command line": capfd.readouterr().out,
        "Python": str(asked),
        "notebook": html.unescape(re.sub(r"<[^>]+>", " ", asked._repr_html_())),
        "page": html.unescape(re.sub(r"<[^>]+>", " ", page)),
        "HTTP": json.dumps(service.predict(**question).json, ensure_ascii=False),
    }
    first = said["answers"][0]
    told = [one["text"] for one in said["stored"][:1]]
    if said["kind"] == "number":
        told += [text for text in (first["text"], first["low_text"], first["high_text"]) if text is not None]
        assert first["value"] >= 0  # as all heights and populations are
        assert (first["low"] is None) == bool(said["notes"])
    told += [note.partition(": ")[2] for note in said["notes"]]
    assert [one["offered"] for one in said["missing"]] == OFFERED.get(name, [])
    if said["missing"]:
        offered = ", ".join(f"{one['name']}={one['offered']}" for one in said["missing"])
        assert " ".join(told).count("; ask with ") == 1
        assert f"; ask with {offered}" in " ".join(told)
    for surface, text in surfaces.items():
        words = " ".join(text.split())
        for one in told:
            note, _, _ = one.partition("; ask with ") if surface == "page" else (one, "", "")  # there it is a link
            assert note in words, (surface, one, words[:2000])
        if surface == "page":
            assert all(f"{one['name']} {one['offered']}" in words for one in said["missing"])
        if surface != "HTTP" and said["kind"] == "number":
            promised = any(promise in words for promise in ("90%", "90 %", "9 of 10"))
            assert promised == (first["low"] is not None), (surface, words[:2000])


def test_through_the_client(service, predictor):
    client = Client(service.url)
    qualifiers = [("date", "1991"), ("place", "town/1")]
    assert client.predict(("p1", "spouse", "?", qualifiers), top=3, candidates=["type"]) == predictor.predict(
        ("p1", "spouse", "?", qualifiers), top=3, candidates=["type"]
    )
    assert client.predict(head="p3", relation="height", tail="?") == predictor.predict(("p3", "height", "?"))
    many = [(f"p{index % 60}", "born in", "?") for index in range(300)]
    assert client.predict_many(many, top=2) == predictor.predict_many(many, top=2)


def test_trends_and_explanations(service, predictor):
    from hynt.trends.trends import trend

    client = Client(service.url)
    assert client.trends(["town/1", "town/2"], "population", points=7) == _plain(
        trend(predictor, ["town/1", "town/2"], "population", points=7)
    )
    asked = ("p1", "spouse", "?", [("date", "1991"), ("place", "town/1")])
    assert client.explain(asked) == _plain(predictor.explain(asked))
    assert client.explain(asked, candidates=["type"]) == _plain(predictor.explain(asked, candidates=["type"]))
    assert client.similar("p1", top=4) == [other.to_dict() for other in predictor.similar("p1", top=4)]


def _plain(found):
    return json.loads(json.dumps(found.to_dict()))


ASKED = [
    ("predict", ("p1", "spouse", "?"), {"qualifiers": {"date": "1991", "place": "town/1"}, "top": 3}),
    ("predict", (("p3", "height", "?"),), {"level": 0.5}),
    ("predict_many", ([("p0", "born in", "?"), {"head": "p3", "relation": "height", "tail": "?"}],), {"top": 2}),
    ("explain", ("p1", "spouse", "?", [("date", "1991"), ("place", "town/1")]), {"candidates": ["type"]}),
    ("explain", (("p3", "height", "?"),), {}),
    ("trends", (["town/1", "town/2"], "population"), {"points": 7}),
    ("trends", ("town/1", "population"), {"points": 3, "start": 1993.5, "end": "1995", "over": "date", "level": 0.8}),
    ("similar", ("p1",), {"top": 4}),
    ("entities", ("spring",), {"limit": 3}),
    ("entity", ("town/0",), {"offset": 1, "limit": 2}),
    ("relations", ("born",), {}),
]


@pytest.mark.parametrize("verb, given, options", ASKED, ids=[f"{verb}-{n}" for n, (verb, *_) in enumerate(ASKED)])
def test_a_run_and_a_client_are_asked_and_answer_alike(verb, given, options, service, predictor):
    run = Run(predictor.saved, "cpu")
    here, there = getattr(run, verb)(*given, **options), getattr(Client(service.url), verb)(*given, **options)
    assert type(here) is type(there)
    assert here == there
    for one in (here, there):
        if hasattr(one, "to_arrow"):
            assert one.to_arrow() == here.to_arrow()
            assert one._repr_html_() == here._repr_html_()
            assert repr(one) == repr(here)


def test_everything_that_asks_was_asked():
    from tools.api_reference import members

    offered = {name for name, _ in members(Client)} - {"is_ready"}
    assert offered == {verb for verb, *_ in ASKED}
