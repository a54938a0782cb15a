"""Models and statistics as one: the sum as written out, weights that are worth it, never worse than a trivial row."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from hynt.batches.masked_batch import Task
from hynt.errors import DataError
from hynt.evaluation import combining
from hynt.evaluation.combination_weights import Asked, fit_numbers, fit_ranks
from hynt.evaluation.combining import combined, fit_weights, fitted
from hynt.evaluation.evaluator import Evaluator, reference_rows
from hynt.evaluation.metrics import TASKS
from hynt.evaluation.tables import best_trivial
from hynt.formats.from_python import graph_from_facts
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models import number_series
from hynt.models.checking import check_model
from hynt.models.combination import Combination, GroupWeights, Weights
from hynt.models.contract import EVERYWHERE, Entities, Position, Relations, ScaledNumber
from hynt.models.registry import build
from hynt.models.trivial import STATISTICS, statistic
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from tests.models.small_models import facts_of
from tests.training.small_graph import NO_DROPOUT, TINY, tiny_settings

CPU = torch.device("cpu")
TOLERATED = 0.002


def series_graph(towns: int = 60) -> KnowledgeGraph:
    """Populations of towns by year, which grow by turns that only their neighbours in time tell, and heights."""
    chance = random.Random(1)
    facts: dict[str, list] = {"train": [], "valid": [], "test": []}
    for town in range(towns):
        population = chance.uniform(1e5, 1e6)
        for year in range(2000, 2016):
            population *= chance.uniform(0.97, 1.05)
            split = chance.choices(list(facts), (8, 1, 1))[0]
            facts[split].append((f"town {town}", "population", population, [("year", float(year))]))
        facts[chance.choice(list(facts))].append((f"town {town}", "height", chance.uniform(0, 2000)))
    return graph_from_facts(facts)


def lopsided_graph(seed: int, people: int = 120) -> KnowledgeGraph:
    """Facts that counts and means know much of: a few towns are usual, brothers are alike, trades go with towns."""
    chance = random.Random(seed)
    facts: dict[str, list] = {"train": [], "valid": [], "test": []}
    for index in range(people):
        person, family = f"person {index}", index % 20
        town = f"town {min(int(chance.expovariate(0.8)), 5)}"
        rows = [
            (person, "born in", town),
            (person, "trade", f"trade {chance.choice((family % 4, 0))}", [("since", 1990 + family), ("in", town)]),
            (person, "height", 150 + 2 * family + chance.random()),
            (person, "weight", 60 + family + 3 * chance.random(), [("year", 2000 + chance.randrange(3))]),
        ]
        facts["train"].append((person, "brother", f"person {(index + 20) % people}"))
        for row in rows:
            facts[chance.choice(("train",) * 4 + ("valid", "test"))].append(row)
    return graph_from_facts(facts, name="lopsided")


def made(graph: KnowledgeGraph, name: str = "hynt"):
    """An untrained model with all that it is asked with."""
    settings = tiny_settings(name, **({"model": NO_DROPOUT[name]} if name in NO_DROPOUT else {}))
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    return new_model(settings, data, CPU).eval(), data


def marks(evaluator: Evaluator, model) -> dict:
    return evaluator.evaluate(model).to_mapping()


def assert_no_worse(found: dict, references: dict) -> None:
    for task in TASKS:
        metric = "rmse" if task == "number" else "mrr"
        name, trivial = best_trivial(references, task, metric)
        own = found[task]["all"][metric]
        worse = own - trivial if task == "number" else trivial - own
        assert worse <= TOLERATED, f"{task}: {own:.4f}, and {name} alone has {trivial:.4f}"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_that_knows_nothing_is_no_worse_than_the_best_trivial_row(seed):
    graph = lopsided_graph(seed, people=400)
    model, data = made(graph)
    valid, test = (Evaluator(graph, data.scaling, split) for split in ("valid", "test"))
    references = reference_rows(test, graph.split("train"))
    alone = marks(test, model)
    with pytest.raises(AssertionError):  # else the test could not fail
        assert_no_worse(alone, references)
    weights = fitted(["hynt"], [model], data.facts, valid)
    assert_no_worse(marks(test, combined([model], data.facts, weights)), references)


def test_of_very_many_candidates_fewer_questions_are_asked(monkeypatch):
    graph = lopsided_graph(0, people=400)
    model, data = made(graph)
    valid, asked = Evaluator(graph, data.scaling, "valid"), {}

    def kept(questions, able, trained):
        asked[questions.features.shape[1] > 1].append(len(questions.relation))
        return GroupWeights((1.0, *(0.0 for _ in able[1:])), {})

    monkeypatch.setattr(combining, "fit_ranks", kept)
    monkeypatch.setattr(combining, "fit_numbers", kept)
    for most in (10**9, 30 * graph.vocabulary.entity_count):
        asked.update({True: [], False: []})
        monkeypatch.setattr(combining, "MOST_SCORES", most)
        monkeypatch.setattr(combining, "FEW_QUESTIONS", 20)
        fitted(["hynt"], [model], data.facts, valid)
        assert max(asked[False]) > 100  # numbers have no candidates, and relations few
        assert max(asked[True][3:]) > 100
        assert (asked[True][:3] == [30, 30, 30]) == (most != 10**9)
        asked[True].clear()
        fitted(["hynt"], [model], data.facts, valid, questions=2 * combining.QUESTIONS)
        assert (asked[True][:3] == [60, 60, 60]) == (most != 10**9)


def test_of_members_that_cannot_answer_nothing_is_kept_while_others_are_weighed(monkeypatch):
    graph = lopsided_graph(0, people=200)
    model, data = made(graph)
    valid, seen = Evaluator(graph, data.scaling, "valid"), []

    def fit(questions, able, trained):
        seen.append(trained)
        assert all(able)
        assert questions.features.shape[2] == questions.answered.shape[1] == len(able)
        return GroupWeights(tuple(float(one + 1) for one in range(len(able))), {7: tuple(1.0 for _ in able)})

    monkeypatch.setattr(combining, "fit_ranks", fit)
    monkeypatch.setattr(combining, "fit_numbers", fit)
    found = fitted(["hynt"], [model], data.facts, valid)
    members = [model, *(statistic(name, data.facts) for name in found.members[1:])]
    assert len(found.groups) == len(seen) > 3
    assert set(seen) == {1}
    for capability, group in found.groups.items():
        able = [capability in member.answers for member in members]
        assert not all(able)
        assert [one > 0 for one in group.everywhere] == [one > 0 for one in group.relations[7]] == able
        assert sorted(one for one in group.everywhere if one) == [1.0 + one for one in range(sum(able))]


def test_a_member_that_knows_the_answer_gets_the_weight():
    """Of two members with the same kind of scores, the one that is right counts, and noise beside it does not hurt."""
    graph = lopsided_graph(2)
    noise, data = made(graph)
    valid, test = (Evaluator(graph, data.scaling, split) for split in ("valid", "test"))
    knowing = build("frequency", data.facts.sizes, data.facts)
    numbers = frozenset(one for one in EVERYWHERE if one[0] is not Task.NUMBER)
    weights = fit_weights(["noise", "frequency"], [noise, knowing], valid, numbers)
    both = Combination(data.facts.sizes, [noise, knowing], weights, numbers)
    assert marks(test, both)["link"]["all"]["mrr"] > marks(test, knowing)["link"]["all"]["mrr"] - 0.01
    alone = fit_weights(["frequency", "noise"], [knowing, noise], valid, numbers)
    first = Combination(data.facts.sizes, [knowing, noise], alone, numbers)
    assert marks(test, first)["link"]["all"]["mrr"] > marks(test, knowing)["link"]["all"]["mrr"] - 0.01


def asked_batch(facts, positions, rows):
    from hynt.batches.buckets import layout_of
    from hynt.batches.masked_batch import mask

    counts = facts.qualifier_counts()[rows]
    layout = layout_of([(len(rows), int(counts.max()))])
    return mask(facts, rows, positions, layout)[0]


def test_scores_are_the_weighted_sums_of_the_members():
    """Written out: weights by task, position and relation; counts as logarithms; numbers on the first one's scale."""
    graph = lopsided_graph(3)
    model, data = made(graph)
    facts, names = data.facts, ("hynt", "frequency", "co-occurrence")
    members = [model, *(statistic(name, facts) for name in names[1:])]
    trade = graph.vocabulary.relation_ids["trade"]
    weights = Weights(names, {(Task.LINK, Position.TAIL): GroupWeights((1.0, 0.5, 0.0), {trade: (0.25, 0.0, -2.0)})})
    both = Combination(facts.sizes, members, weights, model.answers)
    tails = torch.nonzero(~facts.tail_is_number).squeeze(1)
    batch = asked_batch(facts, torch.full_like(tails, 2), tails)
    with torch.no_grad():
        found = both.score(both.read(batch), Entities())
        parts = [member.score(member.read(batch), Entities()) for member in members]
        heads = asked_batch(facts, torch.zeros_like(tails), tails)
        plain = both.score(both.read(heads), Entities())
        expected_plain = model.score(model.read(heads), Entities())
    is_trade = (facts.relation[tails] == trade).unsqueeze(1)
    expected = torch.where(is_trade, 0.25 * parts[0] - 2.0 * parts[2], 1.0 * parts[0] + 0.5 * torch.log1p(parts[1]))
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.equal(plain, expected_plain)  # a capability without weights is the first member's, to the last bit


def test_numbers_stay_among_those_that_the_relation_has():
    graph = lopsided_graph(5)
    model, data = made(graph)
    facts, names = data.facts, ("hynt", "head-mean")
    with torch.no_grad():
        model.number_output_bias.fill_(30.0)  # far beyond, as a few questions of a log scale are
    both = combined([model], facts, Weights(names, {(Task.NUMBER, Position.TAIL): GroupWeights((2.0, -1.0), {})}))
    rows = torch.nonzero(facts.tail_is_number).squeeze(1)
    with torch.no_grad():
        found = both.score(both.read(asked_batch(facts, torch.full_like(rows, 2), rows)), ScaledNumber())
    for relation in facts.relation[rows].unique():
        known = facts.tail_number[rows][facts.relation[rows] == relation]
        own = found[facts.relation[rows] == relation]
        assert known.min() <= own.min()
        assert own.max() <= known.max()


def test_a_statistic_without_an_answer_says_what_the_trained_members_say():
    """Half of the numbers lie on curves of years; there the line is believed, elsewhere the model as it is."""
    graph = series_graph()
    model, data = made(graph)
    facts, names = data.facts, ("hynt", "number-series")
    series = statistic("number-series", facts)
    both = combined([model], facts, Weights(names, {(Task.NUMBER, Position.TAIL): GroupWeights((0.25, 0.75), {})}))
    rows = torch.nonzero(facts.tail_is_number).squeeze(1)
    batch = asked_batch(facts, torch.full_like(rows, 2), rows)
    with torch.no_grad():
        found = both.score(both.read(batch), ScaledNumber())
        own = both._within(model.score(model.read(batch), ScaledNumber()), batch.relation)
        question = series.read(batch)
        line = series.score(question, ScaledNumber())
    on_curve = question.answered()
    assert on_curve.any()
    assert not on_curve.all()
    assert torch.allclose(found[on_curve], (0.25 * own + 0.75 * line)[on_curve], atol=1e-6)
    assert torch.allclose(found[~on_curve], own[~on_curve], atol=1e-6)


def test_fitted_weights_follow_curves_where_there_are_some(monkeypatch):
    graph = series_graph()
    model, data = made(graph)
    valid, test = (Evaluator(graph, data.scaling, split, ("number",)) for split in ("valid", "test"))

    def population_error():
        both = combined([model], data.facts, fitted(["hynt"], [model], data.facts, valid))
        rows = marks(test, both)["number"]["per_relation"]
        return next(row["scaled_rmse"] for row in rows if row["relation"] == "population")

    found = population_error()
    monkeypatch.setattr(
        combining, "STATISTICS", {name: one for name, one in STATISTICS.items() if "series" not in name}
    )
    assert found < 0.8 * population_error()


def test_members_with_and_without_literals_answer_as_by_themselves():
    graph = lopsided_graph(4)
    model, data = made(graph)
    token, tokens = made(graph, "gran")
    rows = torch.arange(len(data.facts))[data.facts.tail_is_number]
    for index, (member, own_facts) in enumerate(((token, tokens.facts), (model, data.facts))):
        row = (1.0 - index, float(index))
        weights = Weights(("gran", "hynt"), {one: GroupWeights(row, {}) for one in EVERYWHERE})
        both = Combination(tokens.facts.sizes, [token, model], weights, EVERYWHERE)
        for position, kind in ((1, Relations()), (2, ScaledNumber())):
            asked = torch.full_like(rows, position)
            with torch.no_grad():
                found = both.score(both.read(asked_batch(tokens.facts, asked, rows)), kind)
                own = member.score(member.read(asked_batch(own_facts, asked, rows)), kind)
            assert torch.equal(found, own)


def test_weights_survive_saving_and_damage_is_told():
    graph = lopsided_graph(5)
    vocabulary = graph.vocabulary
    trade = vocabulary.relation_ids["trade"]
    weights = Weights(
        ("hynt", "frequency"), {(Task.LINK, Position.HEAD): GroupWeights((1.5, -0.25), {trade: (0.1, 2.0)})}
    )
    mapping = weights.to_mapping(vocabulary)
    assert Weights.from_mapping(mapping, vocabulary, "here") == weights
    for damage in (
        {**mapping, "members": ["hynt"]},
        {"members": mapping["members"]},
        {**mapping, "groups": {"link at nowhere": mapping["groups"]["link at head"]}},
        {**mapping, "groups": {"link at head": {"everywhere": [float("nan"), 1.0], "relations": {}}}},
        {**mapping, "groups": {"link at head": {"everywhere": [1.0, 1.0], "relations": {"none": [1.0, 1.0]}}}},
        {**mapping, "members": "xy"},
        {**mapping, "members": [1, 2]},
        {**mapping, "groups": {"link at head": {"everywhere": [10**400, 1.0], "relations": {}}}},
        [],
    ):
        with pytest.raises(DataError, match="the weights are damaged"):
            Weights.from_mapping(damage, vocabulary, "here")


BESIDE_MODELS_ALONE = (
    "co-occurrence qualifier-company shared-facts one-step two-steps head-places tail-places head-mean number-series"
)


@pytest.mark.parametrize("name", [*BESIDE_MODELS_ALONE.split(), "neighbour-regression", "number-beside"])
def test_statistics_keep_the_contract(name, monkeypatch):
    monkeypatch.setattr(number_series, "TELLING", 2.0)  # in random facts no curve tells much,
    monkeypatch.setattr(number_series, "FAMILIES", 1)  # and few are alike but for an entity
    kind, settings = STATISTICS[name]
    check_model(lambda sizes, train: kind.build(sizes, train, settings))


@pytest.mark.parametrize(
    ("members", "everywhere", "said"),
    [
        ((), (), "1 models, 0 members"),
        (("hynt", "zap"), (1.0, 1.0), "'zap' is not a statistic"),
        (("hynt", "relation-mean"), (1.0, 0.5), "'relation-mean' answers no link at a tail"),
    ],
)
def test_weights_that_do_not_fit_their_models_are_refused(members, everywhere, said):
    """Whoever made a run's files may have written anything into them."""
    facts = facts_of([0, 1, 2])
    groups = {(Task.LINK, Position.TAIL): GroupWeights(everywhere, {})}
    with pytest.raises(DataError, match=f"the weights do not fit the models they are of: {said}"):
        combined([build("hynt", facts.sizes, facts, TINY["model"])], facts, Weights(members, groups))


def test_a_combination_keeps_the_contract():
    def joined(sizes, train):
        names = ("hynt", "frequency", "qualifier-company", "relation-mean")
        members = [build("hynt", sizes, train, TINY["model"]), *(statistic(name, train) for name in names[1:])]
        groups = {
            one: GroupWeights((0.7, *((0.0, 0.0, 0.3) if one[0] is Task.NUMBER else (0.4, 0.3, 0.0))), {})
            for one in members[0].answers
        }
        return Combination(sizes, members, Weights(names, groups), members[0].answers)

    check_model(joined)


@pytest.mark.parametrize("questions", [6, 200])
def test_runs_that_err_by_chance_count_alike_and_a_useless_statistic_nothing(questions):
    chance = torch.Generator().manual_seed(0)
    truth = torch.rand(questions, generator=chance, dtype=torch.float64)
    said = truth.unsqueeze(1) + 0.1 * torch.randn(questions, 3, generator=chance, dtype=torch.float64)
    said = torch.cat([said, torch.full((questions, 1), 0.5, dtype=torch.float64)], 1).unsqueeze(1)
    everyone = torch.ones(questions, said.shape[2], dtype=torch.bool)
    asked = Asked(said, everyone[:, :1], np.zeros(questions, dtype=np.int64), truth, everyone)
    found = fit_numbers(asked, [True] * 4, trained=3).everywhere
    assert found[:3] == pytest.approx([1 / 3] * 3, abs=0.01 if questions < 8 else 0.15)
    assert abs(found[3]) < 0.1


def test_tiny_numbers_are_told_apart_by_their_size_too():
    """A radius of an ion, in metres, beside shares of a crust."""
    facts = [(f"element {one}", "radius", 3e-11 + one * 1e-13) for one in range(30)]
    facts += [(f"element {one}", "abundance", 2e-8 + one * 1e-9) for one in range(30)]
    graph = graph_from_facts({"train": facts, "valid": facts[:1]})
    _, data = made(graph)
    model = statistic("number-beside", data.facts)
    batch = asked_batch(data.facts, torch.ones(60, dtype=torch.int64), torch.arange(60))
    found = model.score(model.read(batch), Relations()).argmax(1)
    assert found.tolist() == data.facts.relation.tolist()


def test_runs_that_are_nearly_alike_are_not_set_against_each_other_for_outliers():
    """Two of a hundred numbers are far off, and by chance the difference of two runs points there."""
    chance = np.random.default_rng(0)
    truth = torch.from_numpy(chance.uniform(0.2, 0.4, 100))
    said = truth.unsqueeze(1) + torch.from_numpy(chance.normal(0, 0.01, (100, 5)))
    truth[[3, 50]] += 0.5
    said[[3, 50], 0] += 0.06
    everyone = torch.ones(100, 5, dtype=torch.bool)
    asked = Asked(said.unsqueeze(1), everyone[:, :1], np.arange(100) // 50, truth, everyone)
    found = fit_numbers(asked, [True] * 5, trained=5)
    for row in (found.everywhere, *found.relations.values()):
        assert min(row) >= 0
        assert sum(row) == pytest.approx(1)


def test_the_luckiest_of_runs_that_are_alike_is_not_taken_for_the_best():
    """60 questions tell little: what is taken errs next to no more than the mean of all runs, on others."""
    alike = torch.full((8,), 1 / 8, dtype=torch.float64)
    errors = [0.0, 0.0]
    for seed in range(30):
        chance = np.random.default_rng(seed)
        truth = chance.normal(size=4060)
        said = truth[:, None] + 0.1 * chance.standard_t(3, (4060, 1)) + 0.05 * chance.standard_t(3, (4060, 8))
        said, truth, everyone = torch.tensor(said), torch.tensor(truth), torch.ones(60, 8, dtype=torch.bool)
        asked = Asked(said[:60].unsqueeze(1), everyone[:, :1], np.zeros(60, dtype=np.int64), truth[:60], everyone)
        weights = torch.tensor(fit_numbers(asked, [True] * 8, trained=8).everywhere, dtype=torch.float64)
        for index, one in enumerate((weights, alike)):
            errors[index] += float((said[60:] @ one - truth[60:]).square().mean())
    assert errors[0] < 1.04 * errors[1]


def test_a_model_that_ranks_the_wrong_way_round_gives_way_to_a_statistic():
    """Turned round it was as good as a statistic that is always right; then it was taken as it is."""
    chance = torch.Generator().manual_seed(0)
    features = torch.rand(40, 10, 2, generator=chance, dtype=torch.float64)
    features[:, 0] = torch.tensor([-1.0, 2.0])  # the answer: last by the model, first by the statistic
    present, answered = torch.ones(40, 10, dtype=torch.bool), torch.ones(40, 2, dtype=torch.bool)
    found = fit_ranks(Asked(features, present, np.zeros(40, np.int64), torch.zeros(40), answered), [True, True], 1)
    scores = features @ torch.tensor(found.everywhere, dtype=torch.float64)
    assert (scores.argmax(1) == 0).all()


FITTING = """
import numpy as np, torch
from hynt.evaluation.combination_weights import Asked, fit_ranks
from hynt.training.estimate import peak_memory
torch.manual_seed(0)
count, members = 2000, 6
features = torch.randn(count, 400, members, dtype=torch.float64)
features[:, 0] += torch.linspace(0.5, 1.5, members)
present, answered = torch.ones(count, 400, dtype=torch.bool), torch.ones(count, members, dtype=torch.bool)
asked = Asked(features, present, np.arange(count) % 3, torch.zeros(count, dtype=torch.float64), answered)
before = peak_memory()
fit_ranks(asked, [True] * members, 1)
print((peak_memory() - before) / features.nbytes)
"""


@pytest.mark.parametrize("fit", [fit_ranks, fit_numbers])
def test_fitting_weights_takes_one_thread_and_gives_the_others_back(fit, monkeypatch):
    """Threads that wait for one another took 25 times as long where another process had the second core."""
    chance, taken = torch.Generator().manual_seed(0), []
    features = torch.randn(80, 1 if fit is fit_numbers else 6, 2, generator=chance, dtype=torch.float64)
    every = torch.ones(features.shape[:2], dtype=torch.bool)
    asked = Asked(features, every, np.zeros(80, dtype=np.int64), features[:, 0, 0], every[:, :1].expand(-1, 2))
    solve, before = torch.linalg.solve, torch.get_num_threads()

    def counted(*given):
        taken.append(torch.get_num_threads())
        return solve(*given)

    monkeypatch.setattr(torch.linalg, "solve", counted)
    torch.set_num_threads(3)
    try:
        fit(asked, [True, True], 2)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(taken) == {1}


def test_fitting_weights_copies_scores_a_few_times_only():
    """It took eight times their size: most of what finishing a run of HN-YG takes."""
    done = subprocess.run([sys.executable, "-c", FITTING], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 3
