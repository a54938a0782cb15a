"""An explanation compares answers that the predictor itself would give, part by part."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.asking.question import ask
from hynt.errors import UsageError
from hynt.explanation.explaining import ChangedQuestion, also_mask, changed_scores, folds_of_answers, without_qualifiers
from hynt.explanation.explanations import COLUMNS
from hynt.front.run import load
from hynt.training.run import start, train
from tests.models.small_models import facts_of
from tests.town_graph import town_graph
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")
WEDDING = [("date", "1992-06"), ("place", "t2")]


def by_part(found, change="removed"):
    return {one.part: one for one in found.influences if one.change == change}


def test_a_removed_qualifier_gives_the_answer_to_the_shorter_question(predictor):
    found = predictor.explain(("p2", "spouse", "?", WEDDING))
    whole = predictor.predict(("p2", "spouse", "?", WEDDING), top=99)
    assert (found.about.id, found.about.probability, found.about.rank) == (
        whole[0].id,
        pytest.approx(whole[0].probability),
        1,
    )
    assert [one.id for one in found.answers] == [one.id for one in whole][:5]
    removed = by_part(found)
    for part, says, pairs in (
        ("qualifier 1", "date 1992-06", WEDDING[1:]),
        ("qualifier 2", "place Ogdenville", WEDDING[:1]),
        ("all qualifiers", "", []),
    ):
        shorter = predictor.predict(("p2", "spouse", "?", pairs), top=99)
        one = removed[part]
        assert one.says == says
        assert (one.answer_id, one.answer) == (shorter[0].id, shorter[0].name)
        (same,) = [answer for answer in shorter if answer.id == found.about.id]
        assert one.rank == same.rank
        assert one.probability == pytest.approx(same.probability, abs=1e-12)
        assert one.probability_change == pytest.approx(same.probability - whole[0].probability, abs=1e-12)
        assert one.value is one.value_change is one.change_in_widths is None


def test_hidden_components_are_those_of_the_fact(predictor):
    hidden = by_part(predictor.explain(("p2", "spouse", "?", WEDDING)), "hidden")
    assert {part: one.says for part, one in hidden.items()} == {
        "head": "Person 2",
        "relation": "spouse",
        "value of qualifier 1": "1992-06",
        "value of qualifier 2": "Ogdenville",
    }
    assert all(-1 <= one.probability_change <= 1 for one in hidden.values())
    inside = by_part(predictor.explain(("p2", "spouse", "p9", [("date", "1992-06"), ("place", "?")])), "hidden")
    assert set(inside) == {"head", "relation", "tail", "value of qualifier 1", "relation of qualifier 2"}


def test_most_influential_parts_come_first(predictor):
    found = predictor.explain(("p2", "spouse", "?", WEDDING))
    sizes = [one.size for one in found.influences]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 0


def test_numbers_shift_in_units_and_in_widths(predictor):
    question = ("p2", "spouse", "p9", [("date", "?"), ("place", "t2")])
    found = predictor.explain(question, level=0.8)
    whole = predictor.predict(question, level=0.8)[0]
    shorter = predictor.predict(("p2", "spouse", "p9", [("date", "?")]))[0]
    one = by_part(found)["qualifier 2"]
    assert found.about is None
    assert one.value == shorter.value
    assert one.value_change == shorter.value - whole.value
    assert one.change_in_widths == pytest.approx(one.value_change / (whole.interval[1] - whole.interval[0]))
    assert "all qualifiers" not in by_part(found)
    relation = by_part(found, "hidden")["relation of qualifier 1"]
    assert np.isfinite(relation.value)
    assert relation.value != whole.value


def test_a_relation_beside_a_number_is_explained_on_its_own_scale(predictor):
    found = predictor.explain(("p0", "spouse", "p7", [("?", 1995), ("place", "t0")]))
    assert found.about.id == "date"
    assert found.about.probability == pytest.approx(1.0)
    assert "value of qualifier 1" not in by_part(found, "hidden")
    assert {"head", "relation", "tail", "value of qualifier 2"} == set(by_part(found, "hidden"))


def test_another_answer_can_be_explained_and_candidates_narrowed(predictor):
    found = predictor.explain(("p2", "born in", "?"), answer="Brockway")
    own = predictor.predict(("p2", "born in", "?"), top=99)
    (same,) = [one for one in own if one.id == "t3"]
    assert (found.about.id, found.about.rank) == ("t3", same.rank)
    assert found.about.probability == pytest.approx(same.probability)
    few = predictor.explain(("p2", "born in", "?"), candidates=["type", "unknown"])
    assert few.answers.candidates == 3
    assert few.about.id in {"t0", "t1", "t3"}
    assert all(one.rank <= 3 for one in few.influences)
    with pytest.raises(UsageError, match="the answer is not among the candidates"):
        predictor.explain(("p2", "born in", "?"), answer="Ogdenville", candidates=["type", "unknown"])
    with pytest.raises(UsageError, match="no entity called 'Atlantis'"):
        predictor.explain(("p2", "born in", "?"), answer="Atlantis")
    with pytest.raises(UsageError, match="the question asks for a number"):
        predictor.explain(("p2", "height", "?"), answer="t1")


def test_attention_stands_beside_what_it_is_on(predictor):
    found = predictor.explain(("p2", "spouse", "?", WEDDING))
    assert found.tokens == ("triplet", "date 1992-06", "place Ogdenville")
    removed, hidden = by_part(found), by_part(found, "hidden")
    on_context, on_parts = found.attention.on_context, found.attention.on_parts
    assert removed["qualifier 1"].context_attention == on_context[1]
    assert removed["qualifier 2"].context_attention == on_context[2]
    assert removed["all qualifiers"].context_attention is None
    assert hidden["head"].prediction_attention == on_parts[1]
    assert hidden["relation"].prediction_attention == on_parts[2]
    assert hidden["value of qualifier 1"].prediction_attention is None


def test_tables_agree(predictor):
    found = predictor.explain(("p2", "spouse", "?", WEDDING))
    plain = found.to_dict()
    assert tuple(found.to_pandas().columns) == COLUMNS
    assert found.to_pandas()["part"].tolist() == [one["part"] for one in plain["influences"]]
    assert np.array(plain["attention"]["context"]).shape == (1, 2, 3)
    assert plain["about"]["rank"] == 1
    assert plain["question"] == "Person 2 · spouse · ? (date 1992-06; place Ogdenville)"


def test_nothing_hidden_gives_the_predictors_own_bits(predictor):
    from hynt.asking.candidates import CandidateMask

    asked = ask(predictor.graph, "p2", "spouse", "?", WEDDING)
    (scores,) = changed_scores(predictor.loaded, CPU, [ChangedQuestion(asked)])
    own = predictor.answer(asked, CandidateMask(None, False), 99)
    ids = predictor.graph.vocabulary.entity_ids
    assert [float(scores[0, ids[one.id]]) for one in own] == [one.score for one in own]


def test_a_hidden_part_reaches_no_score(predictor):
    asked = [ask(predictor.graph, head, "spouse", "?", pairs) for head, pairs in (("p2", WEDDING), ("p5", WEDDING))]
    first, second = changed_scores(predictor.loaded, CPU, [ChangedQuestion(one, frozenset([0])) for one in asked])
    assert (first == second).all()
    others = [("date", "2001"), ("place", "t2")]
    asked = [ask(predictor.graph, "p2", "spouse", "?", pairs) for pairs in (WEDDING, others)]
    first, second = changed_scores(predictor.loaded, CPU, [ChangedQuestion(one, frozenset([4])) for one in asked])
    assert (first == second).all()
    shown = changed_scores(predictor.loaded, CPU, [ChangedQuestion(asked[0])])[0]
    assert not (first == shown).all()


def test_hiding_the_asked_part_again_changes_nothing():
    from hynt.batches.buckets import layout_of
    from hynt.batches.masked_batch import mask

    facts = facts_of([2, 2, 1])
    for position in range(5):
        batch, _ = mask(facts, torch.arange(3), torch.full((3,), position), layout_of([(3, 2)]))
        hidden = torch.zeros(3, 7, dtype=torch.bool)
        hidden[:, position] = True
        again = also_mask(batch, hidden)
        for name, tensor in batch.tensors().items():
            assert torch.equal(tensor, getattr(again, name)), name


def test_removing_qualifiers_moves_the_hole(predictor):
    asked = ask(predictor.graph, "p2", "spouse", "p9", [("date", "1992-06"), ("place", "?")])
    fewer = without_qualifiers(asked, frozenset([0]))
    assert fewer.position == 4
    assert fewer.table == ask(predictor.graph, "p2", "spouse", "p9", [("place", "?")]).table


def test_other_models_say_what_they_cannot_show(tmp_path):
    run = train(start(town_graph(), tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU).path
    found = load(run, "cpu").explain(("p2", "height", "?", [("place", "t1")]))
    assert found.influences == ()
    assert found.attention is None
    assert found.tokens == ()
    assert found.notes == (
        "there is no interval: no training fact of this relation says place",
        "this model does not look at qualifiers",
        "this model reads facts with one hidden component only: other components cannot be hidden",
        "this model has no context transformer: there is no attention to show",
    )


def test_a_question_without_qualifiers_may_have_nothing_to_take_away(tmp_path):
    run = train(start(town_graph(), tiny_settings("relation-mean"), tmp_path / "run", CPU), CPU).path
    found = load(run, "cpu").explain(("p2", "height", "?"))
    assert found.influences == ()
    assert found.notes[0].endswith(": without qualifiers there is nothing to take away")
    assert str(found).splitlines()[-len(found.notes) :] == [f"note: {note}" for note in found.notes]


def test_gran_is_explained_without_attention(tmp_path):
    settings = tiny_settings(
        "gran", schedule={"epochs": 1}, batch_size=64, model={"dimension": 16, "layers": 1, "heads": 2}
    )
    run = train(start(town_graph(), settings, tmp_path / "run", CPU), CPU).path
    found = load(run, "cpu").explain(("p2", "spouse", "?", WEDDING))
    assert found.notes == ("this model has no context transformer: there is no attention to show",)
    assert f"  explained: {found.about.name}, rank {found.about.rank}, probability 0." in str(found)
    assert {"head", "relation"} <= set(by_part(found, "hidden"))
    assert {"qualifier 1", "qualifier 2", "all qualifiers"} == set(by_part(found))


def test_a_model_that_reads_facts_says_which_of_them_mattered(inductive_run):
    """Without qualifiers, too: each answer is that of the run over a graph that lacks these facts."""
    run = load(inductive_run, "cpu")
    found = run.explain(("person 3", "knows", "?"), answer="person 4")
    parts = {one.says: one for one in found.influences}
    assert len(parts) >= 3
    assert {(one.part, one.change) for one in found.influences} == {("facts of the head", "removed")}
    assert not any("nothing to take away" in note for note in found.notes)
    graph, own = run.graph, run.graph.names.entity("person 3")
    for says, one in parts.items():
        relation = run.names.relation(says.split(",")[0])
        table = run.loaded.observed.without(folds_of_stored(run, "person 3", "knows", "person 4")).table
        gone = (table.relation == relation) & (
            (table.head == own) | (~graph.vocabulary.relation_is_number[table.relation] & (table.tail_entity == own))
        )
        assert int(gone.sum()) == int(says.split(", ")[1].split()[0])
        asked = run.observing(table.where(~gone)).predict("person 3", "knows", "?", top=100)
        (told,) = [answer for answer in asked if answer.id == "person 4"]
        assert one.probability == pytest.approx(told.probability, abs=1e-6)
        assert one.rank == told.rank
    by_tail = run.explain(("?", "born in", "town 1"))
    assert {one.part for one in by_tail.influences} == {"facts of the tail"}


def folds_of_stored(run, head, relation, tail):
    names = run.names
    asked = ask(run.graph, head, relation, "?")
    return folds_of_answers(run, asked, names.entity(tail))
