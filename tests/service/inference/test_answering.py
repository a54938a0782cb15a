"""What the inference process makes of its jobs: a wrong question, a broken run or a bug harms nobody else's."""

from __future__ import annotations

import json

import pytest

from hynt.errors import DataError
from hynt.service.inference.__main__ import answered
from hynt.service.inference.answering import RunJobs
from hynt.service.inference.process import _replies

RIGHT = {"head": "p0", "relation": "born in", "tail": "?"}
WRONG = {"head": "nobody", "relation": "born in", "tail": "?"}


class Shaky:
    """A predictor that fails at questions about one relation."""

    def __init__(self, predictor, failure):
        self._predictor, self._failure = predictor, failure

    def __getattr__(self, name):
        return getattr(self._predictor, name)

    def answer_many(self, asked, *given):
        if any("height" in one.text for one in asked):
            raise self._failure
        return self._predictor.answer_many(asked, *given)


def test_each_job_has_a_reply_of_its_own(predictor):
    found = RunJobs(predictor).replies("predict", [RIGHT, WRONG, RIGHT | {"top": 2}, RIGHT | {"level": 0.3}])
    assert [bool(reply.body) for reply in found] == [True, False, True, False]
    assert [fault.pointer for reply in found for fault in reply.faults] == ["#/head", "#/level"]
    assert json.loads(found[2].body) == json.loads(found[0].body) | {
        "answers": json.loads(found[0].body)["answers"][:2]
    }


@pytest.mark.parametrize(
    "failure, broken, bug",
    [
        (DataError("the model's answer is not a finite number."), "the model's answer is not a finite number.", ""),
        (ZeroDivisionError("about Person 3"), "", "ZeroDivisionError at test_answering.py:"),
    ],
)
def test_a_broken_run_and_a_bug_are_told_apart(failure, broken, bug, predictor):
    answering = RunJobs(Shaky(predictor, failure))
    found = answering.replies("predict", [RIGHT, RIGHT | {"relation": "height"}, RIGHT])
    assert [bool(reply.body) for reply in found] == [True, False, True]
    assert found[1].broken == broken
    assert found[1].bug.startswith(bug)
    assert "Person" not in found[1].bug
    assert found[1].faults == ()


def test_replies_survive_the_way_back(predictor):
    jobs = [RIGHT, WRONG, RIGHT | {"relation": "height"}]
    answering = RunJobs(Shaky(predictor, KeyError("x")))
    frame = answered(answering, {"id": 7, "kind": "predict", "jobs": jobs})
    assert frame.header["id"] == 7
    assert list(_replies(frame)) == answering.replies("predict", jobs)


def test_a_broken_run_and_a_bug_are_told_to_the_client(site):
    from hynt.service.inference.answering import Reply
    from tests.service.inference.fake_engine import FakeEngine

    engine = FakeEngine()
    page = site(engine)

    async def exchange(kind, jobs):
        return [Reply(b"", broken="the weights are not finite.") if kind == "predict" else Reply(b"", bug="X at y:1")]

    engine.exchange = exchange
    found = page.predict(**RIGHT)
    assert (found.status, found.json["detail"]) == (503, "the weights are not finite.")
    found = page.get("/v1/similar?entity=p0")
    assert (found.status, found.json["type"]) == (500, "urn:hynt:problem:bug")


def test_a_bug_in_the_front_is_a_problem_too(site, monkeypatch, caplog):
    page = site()
    monkeypatch.setattr(page.service.served.views, "entities", lambda query, limit: {}[query])
    found = page.get("/v1/entities?query=Secret")
    assert (found.status, found.json["type"]) == (500, "urn:hynt:problem:bug")
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "GET /v1/entities met a bug in hynt: KeyError at test_answering.py:" in caplog.text
    assert "Secret" not in caplog.text
    assert page.get("/health").status == 200
