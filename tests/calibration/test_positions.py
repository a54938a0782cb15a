"""A temperature for each task and position, on a graph whose probabilities are known."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from hynt import number
from hynt.asking.predictor import Predictor
from hynt.batches.fact_slots import HEAD_ROLE, ROLES, TAIL_ROLE
from hynt.calibration.calibration import Calibration, calibrate
from hynt.calibration.held_out import held_out
from hynt.calibration.measuring import measure
from hynt.calibration.temperature import KEPT
from hynt.errors import DataError
from hynt.formats.from_python import graph_from_facts
from hynt.front.run import load
from hynt.graph.fact_table import HEAD, RELATION, TAIL
from hynt.graph.known_answers import KnownAnswers
from hynt.models.contract import Relations
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")
SEED = 5
CHANCES = {"likes": ([0.7, 0.2, 0.1], [0.6, 0.3, 0.1]), "knows": ([0.2, 0.3, 0.5], [0.05, 0.05, 0.9])}
"""Of each relation, how likely each tail is, and each head."""


def drawn_graph(train_facts=2000, held_out_facts=1000):
    chance = random.Random(SEED)
    facts = {"train": [], "valid": [], "test": []}
    for split, count in (("train", train_facts), ("valid", held_out_facts), ("test", held_out_facts)):
        for _ in range(count):
            relation = chance.choices(["likes", "knows"], [0.75, 0.25])[0]
            tail, head = (chance.choices(range(3), shares)[0] for shares in CHANCES[relation])
            sort = ("sort", f"s{chance.choices(range(3), [0.5, 0.3, 0.2])[0]}")
            trial = ("trial", number(chance.random()))  # no two facts are the same
            facts[split].append((f"h{head}", relation, f"t{tail}", [sort, trial]))
    return graph_from_facts(facts)


class TooSure:
    """A model that knows how likely everything is, but is too sure at some positions and not sure enough at others,
    and surest of heads beside one relation.
    """

    def __init__(self, counting, surest):
        self._counting, self._surest = counting, surest
        self.sizes, self.answers, self.reads = counting.sizes, counting.answers, counting.reads

    def read(self, batch):
        return self._counting.read(batch)

    def score(self, question, candidates):
        logarithm = torch.log(self._counting.score(question, candidates) + 1e-3)
        if isinstance(candidates, Relations):
            return logarithm * torch.where(question.in_qualifier, 0.5, 4.0)[:, None]
        place = question.place % ROLES
        beside = torch.where(question.place // ROLES == self._surest, 6.0, 3.0)
        sure = torch.where(place == HEAD_ROLE, beside, torch.where(place == TAIL_ROLE, 0.4, 2.0))
        return logarithm * sure[:, None]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    run = start(drawn_graph(), tiny_settings("frequency"), tmp_path_factory.mktemp("drawn") / "run", CPU)
    opened = load(train(run, CPU).path, "cpu")
    asked = Predictor(opened.saved, "cpu")
    knows = opened.names.relation("knows")
    asked.__dict__["loaded"] = replace(opened.loaded, model=TooSure(opened.loaded.model, knows))
    asked.__dict__["calibration"] = calibrate(asked.loaded, CPU)
    return asked


def test_first_answers_are_right_as_often_as_they_say_at_every_position(drawn):
    found = measure(drawn.loaded, drawn.calibration, "test", CPU)
    errors = {
        (task, name): one["calibration_error_after"]
        for task in ("link", "relation")
        for name, one in found[task]["positions"].items()
    }
    assert set(errors) == {
        *(("link", name) for name in ("head", "tail", "qualifier value")),
        *(("relation", name) for name in ("relation", "qualifier relation")),
    }
    assert max(errors.values()) < 0.03, errors
    shared = measure(drawn.loaded, replace(drawn.calibration, positions={}, relations={}), "test", CPU)
    assert shared["link"]["positions"]["head"]["calibration_error_after"] > 0.05  # one temperature does not fit all
    temperature = {name: one["temperature"] for name, one in drawn.calibration.positions["link"].items()}
    assert 3.0 < temperature.pop("head") < 6.0
    assert temperature == pytest.approx({"tail": 0.4, "qualifier value": 2.0}, rel=0.15)
    assert drawn.calibration.inverse_temperature("relation", RELATION) == pytest.approx(0.25, rel=0.15)


class Partial(TooSure):
    """One that knows how likely each relation is between a head and a tail, but leans towards "likes"."""

    def __init__(self, counting, vocabulary):
        super().__init__(counting, vocabulary.relation_ids["knows"])
        places = {name: int(name[1:]) if name[0] in "ht" else 0 for name in vocabulary.entities}
        self._place = torch.tensor([*(places[name] for name in vocabulary.entities), 0])
        self._likes, self._knows = (vocabulary.relation_ids[name] for name in CHANCES)

    def read(self, batch):
        question = super().read(batch)
        question.__dict__["pair"] = self._place[batch.head], self._place[batch.tail_entity]
        return question

    def score(self, question, candidates):
        scores = super().score(question, candidates)
        if isinstance(candidates, Relations):
            for relation, (share, lean) in ((self._likes, (0.75, 1.2)), (self._knows, (0.25, 0.0))):
                tail, head = (torch.tensor(one) for one in CHANCES["likes" if lean else "knows"])
                chance = share * head[question.pair[0]] * tail[question.pair[1]]
                scores[:, relation] = torch.where(question.in_qualifier, scores[:, relation], chance.log() + lean)
        return scores


def test_a_relation_said_too_often_has_a_temperature_of_its_own(drawn):
    likes, knows = (drawn.names.relation(name) for name in ("likes", "knows"))
    asked = Predictor(drawn.saved, "cpu")
    partial = Partial(drawn.loaded.model._counting, drawn.graph.vocabulary)
    asked.__dict__["loaded"] = replace(drawn.loaded, model=partial)
    asked.__dict__["calibration"] = calibrate(asked.loaded, CPU)

    def error(of):
        return measure(asked.loaded, of, "test", CPU)["relation"]["positions"]["relation"]["calibration_error_after"]

    assert error(asked.calibration) < 0.03
    assert error(replace(asked.calibration, relations={})) > 0.05
    liked, known = (1 / asked.calibration.inverse_temperature("relation", RELATION, one) for one in (likes, knows))
    assert liked > 1.2 * known
    for question in (("h0", "?", "t0"), ("h2", "?", "t2")):  # each is answered with the temperature of its answer
        answers = asked.predict(question)
        beta = asked.calibration.inverse_temperature("relation", RELATION, asked.names.relation(answers[0].name))
        scores = torch.tensor([answer.score for answer in answers], dtype=torch.float64)
        assert [answer.probability for answer in answers] == pytest.approx(torch.softmax(scores * beta, 0).tolist())
    assert {asked.predict(("h0", "?", "t0"))[0].name, asked.predict(("h2", "?", "t2"))[0].name} == {"likes", "knows"}


@pytest.mark.parametrize(("error", "questions", "told"), [(0.08, 4000, True), (0.05, 4000, False), (0.08, 100, False)])
def test_probabilities_that_stay_off_say_so(drawn, error, questions, told):
    """Of 4,000 questions chance alone makes .024, of 100 it makes .15."""
    measured = drawn.calibration.positions["link"]["head"] | {"calibration_error_after": error, "questions": questions}
    asked = Predictor(drawn.saved, "cpu")
    asked.__dict__["loaded"] = drawn.loaded
    asked.__dict__["calibration"] = replace(drawn.calibration, positions={"link": {"head": measured}, "relation": {}})
    note = "probabilities may be off: those of held-out questions like this are, by 0.08 on average"
    assert (note in asked.predict("?", "likes", "t0").notes) == told
    assert note not in asked.predict("h0", "likes", "?").notes


@pytest.fixture(scope="module", params=["hynt", "hynt-inductive"])
def learned(request, tmp_path_factory):
    """A model that was trained on such facts for six epochs, and has its own mind about each relation: `hynt` alone,
    `hynt-inductive` as people get it.
    """
    graph, path = drawn_graph(held_out_facts=4000), tmp_path_factory.mktemp("learned") / "run"
    if request.param == "hynt":
        settings = tiny_settings("hynt", batch_size=64, schedule={"epochs": 6, "period": 6})
    else:
        settings = resolve_settings(SettingsRequest(request.param, changes=["schedule.epochs=6"]), graph, on_gpu=False)
    return load(train(start(graph, settings, path, CPU), CPU).path, "cpu")


def test_a_trained_model_keeps_its_word_at_every_position(learned):
    found = measure(learned.loaded, learned.calibration, "test", CPU)
    errors = {
        (task, name): (one["calibration_error_before"], one["calibration_error_after"])
        for task in ("link", "relation")
        for name, one in found[task]["positions"].items()
    }
    assert len(errors) == 5
    assert max(after for _, after in errors.values()) < 0.03, errors
    assert max(before for before, _ in errors.values()) > 0.05
    assert found["link"]["positions"]["head"]["questions"] == 4000  # no position has its questions thinned by others


def test_each_relation_has_a_temperature_of_its_own(drawn):
    calibration, names = drawn.calibration, drawn.graph.vocabulary
    beside = [names.relation_ids[name] for name in ("likes", "knows")]
    of = [1 / calibration.inverse_temperature("link", HEAD, one) for one in beside]
    assert of == pytest.approx([3.0, 6.0], rel=0.25)
    kept = Calibration.from_mapping(calibration.to_mapping(names), names, "here")
    assert [1 / kept.inverse_temperature("link", HEAD, one) for one in beside] == pytest.approx(of)
    assert kept.inverse_temperature("link", HEAD, names.relation_ids["sort"]) == pytest.approx(
        1 / calibration.positions["link"]["head"]["temperature"]
    )
    damaged = calibration.to_mapping(names)
    damaged["link"]["positions"]["head"]["relations"]["knows"] = -1.0
    with pytest.raises(DataError, match="calibration cannot be read"):
        Calibration.from_mapping(damaged, names, "here")


def test_answers_have_the_probabilities_of_their_position(drawn):
    questions, likes = [(("?", "likes", "t0"), HEAD), (("h0", "likes", "?"), TAIL)], drawn.names.relation("likes")
    for (question, position), together in zip(
        questions, drawn.predict_many([one for one, _ in questions]), strict=True
    ):
        answers = drawn.predict(question)
        scores = torch.tensor([answer.score for answer in answers], dtype=torch.float64)
        expected = torch.softmax(scores * drawn.calibration.inverse_temperature("link", position, likes), 0)
        assert [answer.probability for answer in answers] == pytest.approx(expected.tolist())
        assert together == answers
        truth = CHANCES["likes"][0 if position == TAIL else 1]
        assert [answers[place].probability for place in range(3)] == pytest.approx(truth, abs=0.05)


def test_the_test_split_has_no_part_in_the_fit(drawn, monkeypatch):
    seen = []

    def watched(tables, is_number):
        seen.append(set(tables))
        return KnownAnswers.build(tables, is_number)

    monkeypatch.setattr("hynt.calibration.held_out.KnownAnswers", type("Watched", (), {"build": staticmethod(watched)}))
    held_out(drawn.loaded, "valid", "relation", CPU)
    assert seen == [{"train", "valid"}]
    held_out(drawn.loaded, "test", "relation", CPU)
    assert seen[1] == {"train", "valid", "test"}


def test_scores_are_made_once_for_all_temperatures(drawn, monkeypatch):
    made, score = [], TooSure.score
    monkeypatch.setattr(TooSure, "score", lambda *given: made.append(given) or score(*given))
    (kept, *_) = held_out(drawn.loaded, "valid", "link", CPU).values()
    once = len(made)
    found = [kept.first_answers(beta) for beta in (1.0, 2.0, 0.5)]
    monkeypatch.setattr("hynt.calibration.held_out.KEPT_BYTES", 0)
    (put_together, *_) = held_out(drawn.loaded, "valid", "link", CPU).values()
    assert put_together.gaps.gap.shape == (len(kept), KEPT)
    for one, beta in zip(found, (1.0, 2.0, 0.5), strict=True):
        again = put_together.first_answers(beta)
        assert again.rest == pytest.approx(one.rest, rel=1e-3)
        assert np.array_equal(again.correct, one.correct)
    assert len(made) == 2 * once
