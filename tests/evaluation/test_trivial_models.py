"""The trivial reference models by hand on a small graph, and the published figures on HN-YG."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from benchmarks.facts_memory import tensor_bytes
from hynt.batches.buckets import layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import mask
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.evaluator import evaluate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Entity, Relation, Vocabulary
from hynt.models import number_regression, number_series, shared_facts, steps, training_statistics
from hynt.models.contract import Entities, EntityIds, EntityRange, Relations, ScaledNumber
from hynt.models.number_regression import NumberRegression, _Context
from hynt.models.number_series import NumberSeries
from hynt.models.shared_facts import SharedFacts
from hynt.models.steps import OneStep, TwoSteps
from hynt.models.training_statistics import neighbour_sums
from hynt.models.trivial import (
    STATISTICS,
    Frequency,
    NeighbourMean,
    NeighbourMeanSettings,
    RelationMean,
    RelationMedian,
    TrivialSettings,
    statistic,
)
from tests.evaluation.benchmark_graphs import read_benchmark
from tests.oracle.plain_facts import table_of

KNOWS, HEIGHT, SINCE = 0, 1, 2
LIKES = 1  # where there are no numbers
VOCABULARY = Vocabulary(
    tuple("abcdef"), (Relation("knows", "entity"), Relation("height", "number"), Relation("since", "number"))
)
# a – b – c – d, e alone with f; heights of b, c, d and e.
TRAIN = [
    (0, KNOWS, 1, [(SINCE, 0.0)]),
    (1, KNOWS, 2, [(SINCE, 1.0)]),
    (3, KNOWS, 2, [(KNOWS, 5)]),
    (4, KNOWS, 5, []),
    (1, HEIGHT, 0.0, []),
    (2, HEIGHT, 1.0, []),
    (3, HEIGHT, 0.5, []),
    (4, HEIGHT, 0.1, []),
    (2, KNOWS, 1, []),
]


@pytest.fixture
def train() -> FactTensors:
    table = table_of(TRAIN)
    return FactTensors.from_table(table, VOCABULARY, NumberScaling.fit([table], VOCABULARY))


def asked(train, rows, positions, capacity=0):
    layout = layout_of([(len(rows), capacity)])
    return mask(train, torch.tensor(rows), torch.tensor(positions), layout)[0]


def heights(model, train, rows):
    return model.score(model.read(asked(train, rows, [2] * len(rows))), ScaledNumber())


def test_relation_mean_and_median(train):
    mean = RelationMean.build(train.sizes, train, TrivialSettings())
    median = RelationMedian.build(train.sizes, train, TrivialSettings())
    assert heights(mean, train, [4, 7]).tolist() == pytest.approx([0.4, 0.4])
    assert heights(median, train, [4, 7]).tolist() == pytest.approx([0.3, 0.3])
    since = asked(train, [0, 1], [4, 4], capacity=1)
    assert mean.score(mean.read(since), ScaledNumber()).tolist() == pytest.approx([0.5, 0.5])


def test_neighbour_mean_looks_one_and_two_steps_away_and_never_at_itself(train):
    model = NeighbourMean.build(train.sizes, train, NeighbourMeanSettings(shrinkage=1.0))
    # b: c one step away (1.0), d two steps away (0.5); a and b itself count nothing. Shrunk by one mean of 0.4.
    # c: b and d one step away (0.0, 0.5), nobody with a height two steps away but itself.
    # e: only f, which has no height: the mean of the relation.
    expected = [(1.0 + 0.5 + 0.4) / 3, (0.0 + 0.5 + 0.4) / 3, 0.4]
    assert heights(model, train, [4, 5, 7]).tolist() == pytest.approx(expected)


def test_regression_reads_the_heads_other_numbers_and_never_the_one_asked_for():
    people, relations = 400, (Relation("knows", "entity"), Relation("height", "number"), Relation("weight", "number"))
    vocabulary = Vocabulary(tuple(map(str, range(people))), relations)
    heights_of = [(7 * person % people) / people for person in range(people)]
    facts = [(person, 1, height, []) for person, height in enumerate(heights_of)]
    facts += [(person, 2, 2 * height + 1, []) for person, height in enumerate(heights_of) if person != 5]
    table = table_of(facts)
    train = FactTensors.from_table(table, vocabulary, NumberScaling.fit([table], vocabulary))
    model = NumberRegression.build(train.sizes, train, TrivialSettings())
    asked_for = table_of([(5, 2, 0.0, []), (6, 2, 9.9, [])])  # what the facts themselves say is masked
    found = FactTensors.from_table(asked_for, vocabulary, NumberScaling.fit([table], vocabulary))
    known = train.tail_number[5], train.tail_number[6]  # weights lie on the same scale as heights
    assert heights(model, found, [0, 1]).tolist() == pytest.approx([float(one) for one in known], abs=0.07)
    assert RelationMean.build(train.sizes, train, TrivialSettings()).value[2] == pytest.approx(0.5, abs=0.05)


def test_regression_reads_the_facts_own_numbers_and_counts_on_no_other_facts_for_them(monkeypatch):
    """An office ends four years after it begins, whatever the holder's other offices do."""
    people, relations = 300, (Relation("office", "entity"), Relation("since", "number"), Relation("until", "number"))
    vocabulary = Vocabulary(tuple(map(str, range(people))), relations)
    begins = [1900 + (37 * person) % 101 for person in range(people)]
    facts = [(one, 0, (one + 1) % people, [(1, float(year)), (2, float(year + 4))]) for one, year in enumerate(begins)]
    table = table_of(facts)
    scaling = NumberScaling.fit([table], vocabulary)
    train = FactTensors.from_table(table, vocabulary, scaling)
    model = NumberRegression.build(train.sizes, train, TrivialSettings())
    questions = [(5, 0, 9, [(1, 1910.0), (2, 0.0)]), (6, 0, 9, [(1, 1990.0), (2, 0.0)]), (5, 0, 9, [(2, 0.0)])]
    found = FactTensors.from_table(table_of(questions), vocabulary, scaling)
    both = asked(found, [0, 1], [6, 6], capacity=2)
    said = model.score(model.read(both), ScaledNumber()).tolist()
    assert said == pytest.approx([0.1, 0.9], abs=0.05)
    # Without the beginning nothing is known: that of the holder's other office stood in a fact that held its end too.
    alone = model.score(model.read(asked(found, [2], [4], capacity=1)), ScaledNumber()).tolist()
    assert alone == pytest.approx([0.5], abs=0.05)
    assert list(model._unfitted) == [3]  # only what was asked about has weights; made all at once, they are the same
    monkeypatch.setattr(number_regression, "FITTED_LATER", 0)
    at_once = NumberRegression.build(train.sizes, train, TrivialSettings())
    assert not at_once._unfitted
    assert at_once.score(at_once.read(both), ScaledNumber()).tolist() == said


def test_regression_reads_which_ranks_are_free():
    """Every head has ten products, ranked 1 to 10 in an order of its own; two ranks are not known yet."""
    heads, products = 60, 10
    vocabulary = Vocabulary(
        tuple(map(str, range(heads + products))), (Relation("makes", "entity"), Relation("rank", "number"))
    )
    chance = np.random.default_rng(0)
    facts, unknown = [], []
    for head in range(heads):
        ranked = [(head, 0, heads + product, [(1, float(rank))]) for product, rank in enumerate(chance.permutation(10))]
        facts += ranked[2:]
        unknown += [ranked[0], ranked[1]]
    scaling = NumberScaling.fit([table_of(facts)], vocabulary)
    train = FactTensors.from_table(table_of(facts), vocabulary, scaling)
    model = NumberRegression.build(train.sizes, train, TrivialSettings())
    found = FactTensors.from_table(table_of(unknown), vocabulary, scaling)
    question = model.read(asked(found, range(len(unknown)), [4] * len(unknown), capacity=1))
    truth = np.array([ranks[0][1] for *_, ranks in unknown]) / 9
    free = truth.reshape(-1, 2).mean(1).repeat(2)  # either of the two
    assert np.abs(model.score(question, ScaledNumber()).numpy() - free).mean() < 0.05
    assert np.abs(free - truth).mean() > 0.1


def test_runs_that_were_weighed_before_keep_the_plain_mean_of_neighbours(train):
    """Their weights were fitted for it: one neighbour's number is drawn half-way to the relation's mean, as ever."""
    former = statistic("number-regression", train)
    context = _Context(torch.tensor([HEIGHT]), *torch.tensor([[HEIGHT], [0], [6], [0], [0]]))
    free, near, said = former._from_neighbours(context, None)
    assert (free.tolist(), said.tolist()) == ([0.0], [[0.0] * 2])
    sums = neighbour_sums(train)
    at = sums.key.tolist().index(HEIGHT * train.sizes.entities)
    plain = (sums.total[at] - sums.numbers[at] * 0.4) / (sums.numbers[at] + 1)
    assert float(near * former._spread[HEIGHT]) == pytest.approx(float(plain))
    assert "number-regression" not in STATISTICS


POPULATION, YEAR, SEX, METHOD = range(4)
"""Of the curves below."""


def curves(noisy=False, methods=1):
    """Populations of 30 towns by year and sex, on lines; which method counted them says nothing."""
    relations = (("population", "number"), ("year", "number"), ("sex", "entity"), ("method", "entity"))
    names = tuple(f"{kind} {one}" for kind in ("town", "sex", "method") for one in range(30))
    chance = np.random.default_rng(0)
    facts = []
    for town in range(30):
        for sex in (30, 31):
            for year in (1990, 2000, 2010, 2020):
                growth = 10 + (sex if methods == 1 else 0)
                count = chance.integers(10**6) if noisy else 1000 * town + (year - 1990) * growth
                method = 60 + int(chance.integers(methods))
                facts.append((town, POPULATION, float(count), [(YEAR, float(year)), (SEX, sex), (METHOD, method)]))
    return Vocabulary(names, tuple(Relation(*one) for one in relations)), facts


def on_curves(people, facts, questions, position=2, capacity=3):
    table = table_of(facts)
    scaling = NumberScaling.fit([table], people)
    train = FactTensors.from_table(table, people, scaling)
    model = NumberSeries.build(train.sizes, train, TrivialSettings())
    found = FactTensors.from_table(table_of(questions), people, scaling)
    question = model.read(asked(found, range(len(questions)), [position] * len(questions), capacity))
    relation = question.relation.numpy()
    said = scaling.unscale(relation, model.score(question, ScaledNumber()).numpy().astype(np.float64))
    return said.tolist(), question.answered().tolist()


@pytest.mark.parametrize("methods", [1, 9])
def test_series_read_the_line_between_the_nearest_points_and_no_further_than_it_goes(methods):
    """Sexes have curves of their own; where no two facts were counted by one method, all make one."""
    people, facts = curves(methods=methods)
    told = [one for place, one in enumerate(facts) if place % 4 != 1]
    unknown = [one for place, one in enumerate(facts) if place % 4 == 1]
    said, known = on_curves(people, told, unknown)
    assert all(known)
    between = [(a[2] + b[2]) / 2 for a, b in zip(facts[::4], facts[2::4], strict=True)]
    assert said == pytest.approx(between, rel=1e-4)
    late = [(3, POPULATION, 0.0, [(YEAR, 2050.0), (SEX, 30), (METHOD, 60)])]
    assert on_curves(people, told, late)[0] == pytest.approx([facts[27][2]], rel=1e-4)  # what 2020 had, and no more
    year = [(3, POPULATION, facts[24][2], [(YEAR, 0.0), (SEX, 30), (METHOD, 60)])]
    assert on_curves(people, told, year, position=4)[0] == pytest.approx([1990.0], abs=0.1)


def test_series_have_no_answer_where_there_is_no_curve_or_curves_told_nothing():
    people, facts = curves()
    alone = [(70, POPULATION, 0.0, [(YEAR, 2000.0), (SEX, 30), (METHOD, 60)])]  # of no town
    bare = [(3, POPULATION, 0.0, [])]  # without a year
    mean = np.mean([fact[2] for fact in facts])
    assert on_curves(people, facts, alone) == ([pytest.approx(mean, rel=1e-4)], [False])
    assert on_curves(people, facts, bare, capacity=0)[1] == [False]
    people, noise = curves(noisy=True)
    assert on_curves(people, noise, noise[:8])[1] == [False] * 8  # though training has these very facts


def test_series_of_long_facts_grow_with_the_facts():
    people, facts = curves()
    long = [(3, POPULATION, 5.0, [(YEAR, float(1900 + one)) for one in range(500)])]
    table = table_of(facts + long)
    train = FactTensors.from_table(table, people, NumberScaling.fit([table], people))
    model = NumberSeries.build(train.sizes, train, TrivialSettings())
    most = number_series.NUMBERS_OF_A_FACT
    assert int(model._points.met.sum()) == 2 * (2 * len(facts) + most * (most - 1))


def by_hand(facts, entities, known, side):
    """What `SharedFacts` says to a question, trait by trait; a trait is (relation, direction, other end or none)."""
    traits: dict[int, set] = {}
    for head, relation, tail, _ in facts:
        is_number = isinstance(tail, float)
        traits.setdefault(head, set()).add((relation, "tail", None))
        if not is_number:
            traits[head].add((relation, "tail", tail))
            traits.setdefault(tail, set()).update({(relation, "head", None), (relation, "head", head)})
    scores = [0.0] * entities
    for trait in traits.get(known, ()):
        owners = [one for one, own in traits.items() if trait in own]
        for other in range(entities):
            wanted = (*side, other)
            both = sum(wanted in traits[one] for one in owners)
            if len(owners) > 1 and wanted != trait:
                scores[other] += (both / (len(owners) + 2)) ** 2
    return [math.log1p(score / 1e-3) / math.log(1e3) for score in scores]


@pytest.mark.parametrize("times", [1, 2])  # a fact that stands there twice says no more
def test_shared_facts_equal_rules_by_hand(times):
    table = table_of(TRAIN * times)
    train = FactTensors.from_table(table, VOCABULARY, NumberScaling.fit([table], VOCABULARY))
    model = SharedFacts.build(train.sizes, train, TrivialSettings())
    tails = model.score(model.read(asked(train, [0, 4], [2, 2], capacity=1)), Entities())
    heads = model.score(model.read(asked(train, [1, 3, 7], [0, 0, 0], capacity=1)), Entities())
    assert tails[0].tolist() == pytest.approx(by_hand(TRAIN, 6, 0, (KNOWS, "tail")))
    assert heads[0].tolist() == pytest.approx(by_hand(TRAIN, 6, 2, (KNOWS, "head")))
    assert heads[1].tolist() == pytest.approx(by_hand(TRAIN, 6, 5, (KNOWS, "head")))
    assert tails[0].max() > 0
    assert not heads[2].any()  # of a height nobody is known
    part = model.score(model.read(asked(train, [0, 4], [2, 2], capacity=1)), EntityRange(2, 5))
    assert torch.equal(part, tails[:, 2:5])


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("onwards", [KNOWS, LIKES])
@pytest.mark.parametrize("largest", [2**24, 0])
def test_two_steps_equal_paths_by_hand(times, onwards, largest, monkeypatch):
    monkeypatch.setattr(steps, "LARGEST_TABLE", largest)
    facts = [(0, KNOWS, 1, []), (1, onwards, 2, []), (0, KNOWS, 2, []), (3, KNOWS, 4, []), (4, onwards, 5, [])]
    relations = (Relation("knows", "entity"), Relation("likes", "entity"))
    table, vocabulary = table_of(facts * times), Vocabulary(tuple("abcdef"), relations)
    train = FactTensors.from_table(table, vocabulary, NumberScaling.fit([table], vocabulary))
    taken = {(head, (relation, "tail"), tail) for head, relation, tail, _ in facts}
    taken |= {(tail, (relation, "head"), head) for head, (relation, _), tail in taken}
    paths = [
        (here, (first, second), there)
        for here, first, between in taken
        for start, second, there in taken
        if start == between and there != here
    ]
    expected = [0.0] * 6
    for here, kinds, there in paths:
        if here == 3:  # whom d knows besides e
            alike = [(one, other) for one, also, other in paths if also == kinds]
            held = sum((one, (KNOWS, "tail"), other) in taken for one, other in alike)
            expected[there] += (held / (len(alike) + 2)) ** 2
    model = TwoSteps.build(train.sizes, train, TrivialSettings())
    found = model.score(model.read(asked(train, [3], [2])), Entities())[0]
    assert found.tolist() == pytest.approx([math.log1p(score / 1e-3) / math.log(1e3) for score in expected])
    assert found.argmax() == 5  # as a knows c, whom b knows or likes


@pytest.mark.parametrize("kind", [SharedFacts, OneStep, TwoSteps])
def test_very_many_rules_are_applied_in_parts_with_the_same_outcome(kind, train, monkeypatch):
    model = kind.build(train.sizes, train, TrivialSettings())
    question = model.read(asked(train, [0, 1, 2, 3], [2, 2, 0, 0], capacity=1))
    whole = model.score(question, Entities())
    monkeypatch.setattr(shared_facts, "AT_ONCE", 2)
    assert torch.equal(model.score(question, Entities()), whole)


def test_the_shrinkage_draws_to_the_mean(train):
    strong = NeighbourMean.build(train.sizes, train, NeighbourMeanSettings(shrinkage=1e6))
    assert heights(strong, train, [4, 5]).tolist() == pytest.approx([0.4, 0.4], abs=1e-4)


def test_a_hidden_head_gets_the_relation_mean(train):
    model = NeighbourMean.build(train.sizes, train, NeighbourMeanSettings())
    question = model.read(asked(train, [4, 0], [0, 0], capacity=1))
    assert model.score(question, ScaledNumber())[0].item() == pytest.approx(0.4)


def test_frequency_counts_the_relation_and_the_position(train):
    model = Frequency.build(train.sizes, train, TrivialSettings())
    tails = model.read(asked(train, [0, 3], [2, 2], capacity=1))
    assert model.score(tails, Entities()).tolist() == [[0, 2, 2, 0, 0, 1]] * 2
    heads = model.read(asked(train, [0], [0], capacity=1))
    assert model.score(heads, Entities()).tolist() == [[1, 1, 1, 1, 1, 0]]
    assert model.score(heads, EntityRange(2, 6)).tolist() == [[1, 1, 1, 0]]
    assert model.score(heads, EntityIds(torch.tensor([5, 0]))).tolist() == [[0, 1]]
    values = model.read(asked(train, [2], [4], capacity=1))
    assert model.score(values, Entities()).tolist() == [[0, 0, 0, 0, 0, 1]]
    relations = model.read(asked(train, [0, 2], [1, 3], capacity=1))
    assert model.score(relations, Relations()).tolist() == [[5, 4, 0], [1, 0, 2]]


def test_what_a_model_does_not_answer_it_refuses(train):
    mean = RelationMean.build(train.sizes, train, TrivialSettings())
    frequency = Frequency.build(train.sizes, train, TrivialSettings())
    batch = asked(train, [4], [2])
    with pytest.raises(ValueError, match="answers numbers, not Entities"):
        mean.score(mean.read(batch), Entities())
    with pytest.raises(ValueError, match="answers entities and relations, not ScaledNumber"):
        frequency.score(frequency.read(batch), ScaledNumber())


def test_the_statistics_survive_saving(train):
    for made in (
        RelationMean.build(train.sizes, train, TrivialSettings()),
        NeighbourMean.build(train.sizes, train, NeighbourMeanSettings()),
        Frequency.build(train.sizes, train, TrivialSettings()),
    ):
        state = {name: tensor.clone() for name, tensor in made.state_dict().items()}
        for tensor in made.state_dict().values():
            tensor.zero_()
        made.load_state_dict(state)
        assert all(torch.equal(made.state_dict()[name], tensor) for name, tensor in state.items())
        assert len(state) >= 1


def test_numbers_without_any_neighbour_or_number_are_no_error():
    table = table_of([(0, KNOWS, 1, [])])
    facts = FactTensors.from_table(table, VOCABULARY, NumberScaling.fit([table], VOCABULARY))
    model = NeighbourMean.build(facts.sizes, facts, NeighbourMeanSettings())
    assert np.isfinite(model.mean.numpy()).all()
    graph = KnowledgeGraph(
        VOCABULARY, {"train": table, "test": table_of(TRAIN)}, tuple(Entity(name) for name in "abcdef")
    )
    found = evaluate(model, graph, NumberScaling.fit([table], VOCABULARY))
    assert found.to_mapping()["number"]["all"]["count"] == 6


def test_the_published_reference_figures_on_hn_yg(shared_data):
    graph = read_benchmark(shared_data / "HN-YG" / "normalized")
    scaling = NumberScaling.fit(list(graph.splits.values()), graph.vocabulary)
    train = FactTensors.from_table(graph.split("train"), graph.vocabulary, scaling)

    def rmse(model):
        found = evaluate(model, graph, scaling, tasks=["number"]).to_mapping()["number"]
        assert (found["triplet"]["count"], found["all"]["count"]) == (3319, 4384)
        return round(found["triplet"]["rmse"], 4), round(found["all"]["rmse"], 4)

    assert rmse(RelationMean.build(train.sizes, train, TrivialSettings())) == (0.1019, 0.1141)
    assert rmse(RelationMedian.build(train.sizes, train, TrivialSettings())) == (0.1100, 0.1211)
    assert rmse(NeighbourMean.build(train.sizes, train, NeighbourMeanSettings())) == (0.0787, 0.0956)


@pytest.mark.slow
def test_the_frequency_row_on_hn_yg(shared_data):
    graph = read_benchmark(shared_data / "HN-YG" / "normalized")
    scaling = NumberScaling.fit(list(graph.splits.values()), graph.vocabulary)
    train = FactTensors.from_table(graph.split("train"), graph.vocabulary, scaling)
    frequency = Frequency.build(train.sizes, train, TrivialSettings())
    link = evaluate(frequency, graph, scaling, tasks=["link", "relation"])
    assert sum(len(questions) for questions in link.per_question.values()) == 25_047 - 4_384
    assert round(link.metric("link.all.mrr"), 4) == 0.1187


def around_a_hub(leaves, numbers, seed=0):
    """A hub whose neighbours have numbers of many relations, each of a few, and some edges among themselves."""
    random = np.random.default_rng(seed)
    relations = (Relation("near", "entity"), *(Relation(f"number {one}", "number") for one in range(numbers)))
    vocabulary = Vocabulary(tuple(map(str, range(leaves + 1))), relations)
    facts = [(0, 0, leaf, []) if leaf % 2 else (leaf, 0, 0, []) for leaf in range(1, leaves + 1)]
    facts += [(int(one), 0, int(other), []) for one, other in random.integers(0, leaves + 1, (leaves // 2, 2))]
    facts += [
        (int(head), 1 + index % numbers, float(random.random()), [(1, float(index))] if index % 5 == 0 else [])
        for index, head in enumerate(random.integers(0, leaves + 1, 3 * numbers))
    ]
    table = table_of(facts)
    return FactTensors.from_table(table, vocabulary, NumberScaling.fit([table], vocabulary))


@pytest.mark.parametrize("kept", [0, 200])
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_added_up_where_they_are_asked_for_as_in_a_table(monkeypatch, seed, kept):
    facts = around_a_hub(60, 25, seed)
    rows = torch.nonzero(facts.tail_is_number).squeeze(1).tolist()
    kinds = ((NeighbourMean, NeighbourMeanSettings()), (NumberRegression, TrivialSettings()))
    tabled = [kind.build(facts.sizes, facts, settings) for kind, settings in kinds]
    monkeypatch.setattr(training_statistics, "MOST_SUMS", 0)
    monkeypatch.setattr(training_statistics, "KEPT_SUMS", kept)
    for before, (kind, settings) in zip(tabled, kinds, strict=True):
        model = kind.build(facts.sizes, facts, settings)
        assert heights(model, facts, rows).tolist() == pytest.approx(heights(before, facts, rows).tolist(), abs=1e-6)
        hidden = asked(facts, rows[:2], [0, 0], capacity=1)
        assert torch.equal(
            model.score(model.read(hidden), ScaledNumber()), before.score(before.read(hidden), ScaledNumber())
        )


@pytest.mark.parametrize("kind", [NeighbourMean, NumberRegression])
def test_what_statistics_hold_does_not_grow_with_relations_times_entities(monkeypatch, kind):
    """Around a hub every entity has neighbours with numbers of every relation: of a million facts, a table of 20 GB."""
    monkeypatch.setattr(training_statistics, "MOST_SUMS", 10_000)
    monkeypatch.setattr(training_statistics, "KEPT_SUMS", 10_000)
    facts = around_a_hub(2_000, 400)
    model = kind.build(facts.sizes, facts, NeighbourMeanSettings())
    assert tensor_bytes(model, set()) < 24 * 2_000 * 400 / 4  # a table has 24 bytes for each of them
    assert torch.isfinite(heights(model, facts, torch.nonzero(facts.tail_is_number).squeeze(1)[:50].tolist())).all()
