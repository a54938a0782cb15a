"""Many questions at once get what each gets alone, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from hynt import number
from hynt.asking import answering as best
from hynt.asking.candidates import CandidateMask, candidate_mask
from hynt.asking.question import ask
from hynt.errors import DataError, UsageError
from hynt.front.run import load
from hynt.runs import scoring
from hynt.runs.scoring import ReadTile
from hynt.training.run import start, train
from tests.town_graph import PEOPLE, town_graph
from tests.training.small_graph import tiny_settings

people = some.integers(0, PEOPLE - 1).map(lambda index: f"p{index}")
towns_of = some.integers(0, 3).map(lambda index: f"t{index}")
dates = some.integers(1985, 2015).map(lambda year: f"{year}-06")
pairs = some.lists(
    some.one_of(some.tuples(some.just("date"), dates), some.tuples(some.just("place"), towns_of)), max_size=4
)


@some.composite
def questions(draw):
    """Every kind of blank: entities, relations beside entities or numbers, numbers; in triplets and qualifiers."""
    kind = draw(some.sampled_from(["spouse", "height", "town"]))
    if kind == "spouse":
        parts = [draw(people), "P26", draw(people)]
    elif kind == "height":
        parts = [draw(people), "height", number(draw(some.integers(140, 220)), "cm")]
    else:
        parts = [draw(people), "P19", draw(towns_of)]
    flat = [*parts, *(part for pair in draw(pairs) for part in pair)]
    flat[draw(some.integers(0, len(flat) - 1))] = "?"
    return flat[0], flat[1], flat[2], [tuple(flat[at : at + 2]) for at in range(3, len(flat), 2)]


wishes = some.sampled_from([(), ("unknown",), ("type",), ("type", "unknown"), (["t0", "t1", "p3", "P19", "height"],)])


def allowed_for(graph, asked, wish):
    """The wish where it leaves a candidate, else everything."""
    try:
        return candidate_mask(graph, asked, wish)
    except UsageError:
        return CandidateMask(None, False)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(some.tuples(questions(), wishes), min_size=1, max_size=12), some.sampled_from([1, 3, 1000]))
def test_together_is_as_alone(predictor, drawn, top):
    asked = [ask(predictor.graph, *question, predictor.names) for question, _ in drawn]
    allowed = [allowed_for(predictor.graph, one, wish) for one, (_, wish) in zip(asked, drawn, strict=True)]
    alone = []
    for one, may in zip(asked, allowed, strict=True):
        try:
            alone.append(predictor.answer(one, may, top, 0.8).to_dict())
        except UsageError as problem:
            alone.append(problem.what)
    fine = [number for number, found in enumerate(alone) if isinstance(found, dict)]
    together = predictor.answer_many([asked[at] for at in fine], [allowed[at] for at in fine], top, 0.8)
    assert [found.to_dict() for found in together] == [alone[at] for at in fine]


def test_a_full_graph_of_questions_over_many_tiles_is_as_alone(predictor):
    drawn = [(f"p{index}", relation, "?", []) for index in range(PEOPLE) for relation in ("P19", "height", "P26")]
    drawn += [("?", "P26", f"p{index}", [("place", "t1"), ("date", "1999-06")]) for index in range(PEOPLE)]
    drawn += [(f"p{index}", "?", "1.7 m", []) for index in range(PEOPLE)]
    asked = [ask(predictor.graph, *question, predictor.names) for question in drawn]
    together = predictor.answer_many(asked, top=7)
    assert len(together) == len(asked) == 5 * PEOPLE
    everything = CandidateMask(None, False)
    for at in range(0, len(asked), 7):
        assert together[at] == predictor.answer(asked[at], everything, 7)


def test_the_first_places_and_probabilities_are_those_of_the_plain_rule():
    """Against an obvious oracle, with many ties, few allowed, and candidates in small chunks."""
    generator = np.random.default_rng(3)
    for _ in range(30):
        rows, count, top = 5, int(generator.integers(1, 40)), int(generator.integers(1, 12))
        scores = generator.integers(-3, 4, (rows, count)).astype(np.float32)
        allowed = generator.random((rows, count)) < 0.6
        width = int(generator.integers(1, count + 1))
        chunks = [(first, torch.from_numpy(scores[:, first : first + width])) for first in range(0, count, width)]
        mask = torch.from_numpy(allowed)
        found = best.best_candidates(chunks, lambda first, end, mask=mask: mask[:, first:end], 0.7, top)
        for row in range(rows):
            logits = scores[row].astype(np.float64) * 0.7
            expected = sorted(np.flatnonzero(allowed[row]).tolist(), key=lambda place: (-logits[place], place))[:top]
            kept = torch.isfinite(found.score[row]).numpy()
            assert found.candidate[row].numpy()[kept].tolist() == expected
            assert found.count[row] == allowed[row].sum()
            if allowed[row].any():
                made = np.exp(found.score[row].numpy()[kept].astype(np.float64) * 0.7 - found.total[row].item())
                whole = np.exp(logits[allowed[row]]).sum()
                assert np.allclose(made, np.exp(logits[expected]) / whole, rtol=1e-12)


def test_all_scores_are_never_held_at_once(monkeypatch):
    """Chunks are let go one by one: only the best of them stay."""
    monkeypatch.setattr(best, "_AT_ONCE", 64)
    widths = []
    whole = torch.arange(400.0).reshape(4, 100)
    plain = best._of_chunk
    monkeypatch.setattr(best, "_of_chunk", lambda scores, *rest: widths.append(scores.shape[1]) or plain(scores, *rest))
    found = best.best_candidates([(0, whole)], lambda first, end: None, 1.0, 3)
    assert max(widths) == 16
    assert found.candidate.tolist() == [[99, 98, 97]] * 4


def test_entities_are_scored_in_chunks_with_the_same_answers(predictor, monkeypatch):
    drawn = [("p2", "born in", "?"), ("?", "P26", "p3"), ("p4", "P26", "p1", [("place", "?")])]
    whole = predictor.predict_many(drawn, top=5)
    model = predictor.loaded.model
    plain, most = model.score, []

    def measured(question, candidates):
        scores = plain(question, candidates)
        most.append(scores.numel())
        return scores

    monkeypatch.setattr(model, "score", measured)
    monkeypatch.setattr(scoring, "SCORES_AT_ONCE", 64 * 7)  # tiles of 64 rows see 7 entities at a time
    in_chunks = predictor.predict_many(drawn, top=5)
    assert max(most) <= 64 * 7 < 64 * predictor.graph.vocabulary.entity_count
    for one, other in zip(whole, in_chunks, strict=True):
        assert [answer.id for answer in one] == [answer.id for answer in other]
        assert [answer.probability for answer in one] == pytest.approx([answer.probability for answer in other])


def test_questions_of_python_users(predictor):
    drawn = [
        ("p2", "born in", "?"),
        {"head": "p2", "relation": "height", "tail": "?"},
        {"head": "p2", "relation": "spouse", "tail": "p9", "qualifiers": [("place", "?")]},
    ]
    found = predictor.predict_many(drawn, top=2, candidates="type", level=0.5)
    assert [one.kind for one in found] == ["entity", "number", "entity"]
    assert found[0] == predictor.predict(drawn[0], top=2, candidates="type")
    assert found[1] == predictor.predict(head="p2", relation="height", tail="?", level=0.5)
    assert predictor.predict_many([]) == []


@pytest.mark.parametrize(
    "question,where,word",
    [
        (("p2", "born in", "Atlantis"), "question 2", "the question has no blank."),
        (("Nobody", "born in", "?"), "question 2, head", "the graph has no entity called 'Nobody'."),
        (("p0", "?", "1e9"), "question 2, relation", "the number is far outside the training range of every relation."),
        ({"head": "p2", "relatoin": "born in", "tail": "?"}, "question 2", "'relatoin' is not part of a question."),
        ("p2 born in ?", "question 2", "'p2 born in ?' is not a fact."),
    ],
)
def test_a_refusal_says_which_question_it_is_about(predictor, question, where, word):
    with pytest.raises(UsageError) as problem:
        predictor.predict_many([("p2", "born in", "?"), question])
    assert (problem.value.where, problem.value.what) == (where, word)


def test_where_no_candidate_is_left_the_question_is_named(predictor):
    asked = [ask(predictor.graph, "p2", "born in", "?")] * 2
    only = np.zeros(predictor.graph.vocabulary.entity_count, dtype=np.bool_)
    only[predictor.graph.vocabulary.entity_ids["t2"]] = True  # which is known
    with pytest.raises(UsageError, match="no candidate is left") as problem:
        predictor.answer_many(asked, [CandidateMask(None, False), CandidateMask(only, True)])
    assert problem.value.where == "question 2, candidates"
    with pytest.raises(UsageError, match="there are 2 questions and 1 candidates"):
        predictor.answer_many(asked, [CandidateMask(None, False)])


def test_models_that_score_everything_alike_rank_by_id(tmp_path):
    cpu = torch.device("cpu")
    run = train(start(town_graph(), tiny_settings("frequency"), tmp_path / "run", cpu), cpu).path
    predictor = load(run, "cpu")
    found = predictor.predict(("p2", "born in", "?"), top=30)
    order = [(-answer.score, predictor.graph.vocabulary.entity_ids[answer.id]) for answer in found]
    assert order == sorted(order)
    assert len({score for score, _ in order}) < 10


def test_scores_that_are_no_numbers_are_the_models_fault(predictor, monkeypatch):
    chunk = (0, torch.full((64, predictor.graph.vocabulary.entity_count), float("nan")))
    monkeypatch.setattr(ReadTile, "entity_chunks", lambda tile: iter([chunk]))
    with pytest.raises(DataError, match="answer to Person 2 · born in · \\? is not a finite number"):
        predictor.predict(("p2", "born in", "?"))
