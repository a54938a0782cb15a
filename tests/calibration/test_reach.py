"""Intervals that know easy questions from hard ones, on graphs whose noise is known."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest
import torch

from benchmarks import interval_coverage
from hynt import number
from hynt.calibration.calibration import CALIBRATION
from hynt.calibration.held_out import read_numbers
from hynt.calibration.intervals import fit_conditional_radii
from hynt.calibration.measuring import measure
from hynt.calibration.reach import BINS, DRAWN, SIDE, AskedNumbers, ResidualScale
from hynt.errors import UsageError
from hynt.files import index_text, read_index
from hynt.formats.from_python import graph_from_facts
from hynt.front.run import load
from hynt.graph.fact_table import TAIL
from hynt.runs.scoring import SaidNumbers
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")
SEED, GROUPS, QUIET, LOUD = 11, 20, 0.2, 10.0


def noisy_graph(train_facts=2400, held_out=4000):
    """Numbers around 50; in half the groups, which a qualifier names, they stray by 0.2 and in the rest by 10. With so
    many held out, what a half covers strays by a hundredth.
    """
    chance = random.Random(SEED)
    facts = {"train": [], "valid": [], "test": []}
    for split, count in (("train", train_facts), ("valid", held_out), ("test", held_out)):
        for index in range(count):
            group = chance.randrange(GROUPS)
            value = 50 + chance.gauss(0, QUIET if group % 2 else LOUD)
            facts[split].append((f"thing {index % 50}", "size", number(value), [("group", f"group {group}")]))
    return graph_from_facts(facts)


@pytest.fixture(scope="module")
def noisy():
    return noisy_graph()


def _halves(run):
    """Of the quiet and the loud groups: the share of test numbers inside their 90 % interval, and the mean width."""
    graph, table = run.graph, run.graph.split("test")
    facts = list(table.facts(graph.vocabulary))
    quiet = np.array([int(fact.qualifiers[0].value.split()[1]) % 2 == 1 for fact in facts])
    asked = read_numbers(run.loaded, "test", CPU).asked
    radii, scaling = run.calibration.radii, run.loaded.scaling
    low, high = radii.interval(scaling, asked.relation, asked.scaled, 0.9, radii.reach(asked))
    truth = np.array([fact.tail.value for fact in facts])
    inside = (low <= truth) & (truth <= high)
    return [(inside[chosen].mean(), (high - low)[chosen].mean()) for chosen in (quiet, ~quiet)]


@pytest.fixture(scope="module")
def one_number(noisy, tmp_path_factory):
    settings = tiny_settings("relation-median")
    return train(start(noisy, settings, tmp_path_factory.mktemp("noisy") / "run", CPU), CPU).path


def test_a_model_with_one_number_has_short_intervals_where_there_is_little_noise(one_number):
    (quiet, narrow), (loud, wide) = _halves(load(one_number, "cpu"))
    assert 0.87 <= quiet <= 0.93
    assert 0.87 <= loud <= 0.93
    assert wide >= 20 * narrow


def test_one_width_for_each_relation_gives_hard_questions_up(one_number):
    """It may be as narrow in the mean, and covers nine tenths in all: the score says which intervals are better."""
    run = load(one_number, "cpu")
    told = interval_coverage.thirds(run.loaded, read_numbers(run.loaded, "valid", CPU), times=4)
    assert told["questions"] == 4_000
    ours, one = told["for_the_question"], told["one_width_each"]
    for kind in (ours, one):
        assert 0.87 <= kind["coverage"]["mean"] <= 0.93
        mean = np.mean([part["coverage"]["mean"] for part in kind["thirds"]])
        assert kind["coverage"]["mean"] == pytest.approx(mean, abs=1e-3)
    assert [0.86 <= part["coverage"]["mean"] <= 0.94 for part in ours["thirds"]] == [True] * 3
    assert one["thirds"][0]["coverage"]["mean"] == 1.0
    assert one["thirds"][2]["coverage"]["mean"] < 0.86
    # Of normal errors, intervals of one size that hold nine tenths of those of two sizes.
    assert ours["score"]["mean"] < 0.85 * one["score"]["mean"]
    assert told["one_width_each_same_ends"]["width"]["mean"] == pytest.approx(one["width"]["mean"])


def test_relations_whose_errors_are_spread_otherwise_are_all_covered(tmp_path):
    """Of one typical size, but even in one relation and with a long tail in the other: one radius would hold all of the
    first and too few of the second.
    """
    chance, facts = random.Random(SEED), {"train": [], "valid": [], "test": []}
    for split, count in (("train", 600), ("valid", 2000), ("test", 2000)):
        for index in range(count):
            even, long = chance.uniform(-2, 2), chance.choice((-1, 1)) * chance.paretovariate(1.5)
            value = 1000 + (even if index % 2 else long)
            facts[split].append((f"thing {index % 50}", ("long", "even")[index % 2], number(value)))
    run = load(train(start(graph_from_facts(facts), tiny_settings("relation-median"), tmp_path / "run", CPU), CPU).path)
    told = measure(run.loaded, run.calibration, "test", CPU)["number"]["relations"]
    assert [0.87 <= one["coverage"] <= 0.93 for one in told] == [True, True], told


def test_a_model_with_a_distribution_has_its_own_quantiles_set_right(noisy):
    """The model knows which groups are loud and on which side it may err, but reaches half as far as it should."""
    chance, table, names = np.random.default_rng(SEED), noisy.split("valid"), noisy.vocabulary
    count = len(table)
    quiet = np.array([int(fact.qualifiers[0].value.split()[1]) % 2 == 1 for fact in table.facts(names)])
    noise = np.where(quiet, QUIET, LOUD)
    skewed = np.stack([0.8 * noise, 0.4 * noise], axis=1) * chance.uniform(0.8, 1.2, (count, 1))
    relation, spread = table.relation.astype(np.int64), np.ones(names.relation_count)
    said = SaidNumbers(np.zeros(count), skewed)
    asked = AskedNumbers.of(table, np.arange(count), np.full(count, TAIL), relation, said, spread)

    def truths(times):
        side = np.where(chance.random((times, count)) < 0.5, -2, 1)
        return noise * side * np.abs(chance.normal(size=(times, count)))

    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    radii = fit_conditional_radii(asked, truths(1)[0], nothing)
    reach, radius, new = radii.reach(asked), radii.radius[radii.at(0.9), relation], truths(20)
    inside = (-radius * reach.below <= new) & (new <= radius * reach.above)
    assert 0.87 <= inside[:, quiet].mean() <= 0.93
    assert 0.87 <= inside[:, ~quiet].mean() <= 0.93
    width = radius * (reach.below + reach.above)
    assert width[~quiet].mean() >= 20 * width[quiet].mean()
    assert reach.below.mean() == pytest.approx(2 * reach.above.mean())


@pytest.mark.parametrize(("knows", "own"), [(True, 1.0), (False, 0.0)])
def test_a_model_is_believed_about_its_reach_only_where_that_makes_intervals_shorter(noisy, knows, own):
    """Errors of all sizes, which no part of the question tells: the model knows them, or guesses."""
    chance, table, names = np.random.default_rng(SEED), noisy.split("valid"), noisy.vocabulary
    count, spread = len(table), np.ones(names.relation_count)
    size, guess = (np.exp(chance.normal(size=count)) for _ in range(2))
    said = SaidNumbers(np.zeros(count), np.stack([size if knows else guess] * 2, axis=1))
    relation = table.relation.astype(np.int64)
    asked = AskedNumbers.of(table, np.arange(count), np.full(count, TAIL), relation, said, spread)
    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    assert nothing.fitted(asked, size * chance.normal(size=count))[0].own == own


def test_relations_without_held_out_numbers_are_covered_too():
    """Each relation errs by an amount of its own, those that are asked for often by far less than the others. Of some
    nothing was held out, and each of them is like any other relation.
    """
    chance, relations, checked = np.random.default_rng(SEED), 40, 30
    facts = [("thing", f"size {index}", number(float(index))) for index in range(relations)]
    table, names = (graph := graph_from_facts({"train": facts})).split("train"), graph.vocabulary
    spread = np.ones(relations)
    nothing = ResidualScale.none(names, np.zeros((relations, BINS - 1)), spread)

    def asked_for(relation):
        said, tail = SaidNumbers(np.zeros(len(relation))), np.full(len(relation), TAIL)
        return AskedNumbers.of(table, relation, tail, relation, said, spread)

    covered, often = [], np.arange(relations) % 3 > 0
    times = np.where(np.arange(relations) < checked, np.where(often, 100, 5), 0)
    for _ in range(12):
        size = np.exp(chance.normal(size=relations)) * np.where(often, 0.02, 1.0)
        relation = np.repeat(np.arange(relations), times)
        radii = fit_conditional_radii(asked_for(relation), size[relation] * chance.normal(size=len(relation)), nothing)
        new = np.repeat(np.arange(checked, relations), 50)
        asked, radius = asked_for(new), radii.radius[radii.at(0.9), new]
        covered += (np.abs(size[new] * chance.normal(size=len(new))) <= radius * radii.reach(asked).above).tolist()
    assert 0.85 <= np.mean(covered) <= 0.97


def test_where_few_relations_were_checked_another_has_no_interval():
    """One relation that errs little says nothing of the next."""
    facts = [("thing", f"size {index}", number(float(index))) for index in range(4)]
    graph, spread = graph_from_facts({"train": facts}), np.ones(4)
    nothing = ResidualScale.none(graph.vocabulary, np.zeros((4, BINS - 1)), spread)
    for count in (40, 200):
        relation = np.arange(count) % 3
        asked = AskedNumbers.of(
            graph.split("train"), relation, np.full(count, TAIL), relation, SaidNumbers(np.zeros(count)), spread
        )
        radii = fit_conditional_radii(asked, np.random.default_rng(SEED).normal(size=count), nothing)
        assert np.isfinite(radii.radius[radii.at(0.9), :3]).all()
        assert np.isinf(radii.radius[radii.at(0.9), 3])


def test_answers_from_a_curve_reach_as_far_as_curves_err(noisy):
    """Half of the questions are answered by a curve too, which errs a hundredth as much; nothing else tells which."""
    chance, table, names = np.random.default_rng(SEED), noisy.split("train"), noisy.vocabulary
    count, spread = 2_000, np.ones(names.relation_count)
    rows, relation = np.arange(count) % len(table), np.zeros(count, dtype=np.int64)
    known = chance.random(count) < 0.5
    said = SaidNumbers(np.zeros(count), by_all=known)
    asked = AskedNumbers.of(table, rows, np.full(count, TAIL), relation, said, spread)
    truth = np.where(known, 0.01, 1.0) * chance.normal(size=count)
    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    radii = fit_conditional_radii(asked, truth, nothing)
    reach, radius = radii.reach(asked), radii.radius[radii.at(0.9), relation]
    inside = (-radius * reach.below <= truth) & (truth <= radius * reach.above)
    assert 0.87 <= inside[known].mean() <= 0.93
    assert 0.87 <= inside[~known].mean() <= 0.93
    width = reach.below + reach.above
    assert width[~known].mean() > 50 * width[known].mean()
    again = nothing.read(radii.scale.to_mapping(), "here")
    assert again.reach(asked).below == pytest.approx(reach.below)
    older = {kind: effects for kind, effects in radii.scale.to_mapping().items() if kind != "known"}
    assert nothing.read(older, "here").reach(asked).below[0] > 0


def test_facts_with_many_qualifiers_do_not_drown_what_one_of_them_says():
    """Twenty values of one qualifier each, and one of another that says how large the error is. Effects that were
    fitted to all twenty at once passed their mark further each time, and in the end all counted for nothing.
    """
    chance, facts = random.Random(SEED), []
    for _ in range(1_500):
        members = [("member", f"person {one}") for one in chance.sample(range(60), 20)]
        facts.append(("thing", "size", number(50.0), [*members, ("group", f"group {chance.randrange(GROUPS)}")]))
    graph = graph_from_facts({"train": facts})
    table, names, spread = graph.split("train"), graph.vocabulary, np.ones(graph.vocabulary.relation_count)
    quiet = np.array([int(fact.qualifiers[-1].value.split()[1]) % 2 == 1 for fact in table.facts(names)])
    count, relation = len(table), table.relation.astype(np.int64)
    said, tail = SaidNumbers(np.zeros(count)), np.full(count, TAIL)
    asked = AskedNumbers.of(table, np.arange(count), tail, relation, said, spread)
    noise, random_numbers = np.where(quiet, QUIET, LOUD), np.random.default_rng(SEED)
    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    radii = fit_conditional_radii(asked, noise * random_numbers.normal(size=count), nothing)
    reach = radii.radius[radii.at(0.9), relation] * radii.reach(asked).above
    inside = np.abs(noise * random_numbers.normal(size=(20, count))) <= reach
    assert 0.87 <= inside[:, quiet].mean() <= 0.93
    assert 0.87 <= inside[:, ~quiet].mean() <= 0.93
    assert reach[~quiet].mean() >= 20 * reach[quiet].mean()


def test_errors_that_go_further_one_way_have_intervals_that_do(noisy):
    """Low answers err far upwards and a little downwards, high ones the other way round."""
    chance, table, names = np.random.default_rng(SEED), noisy.split("valid"), noisy.vocabulary
    count, relation, spread = len(table), table.relation.astype(np.int64), np.ones(names.relation_count)
    said = chance.choice([-1.0, 1.0], count)
    asked = AskedNumbers.of(table, np.arange(count), np.full(count, TAIL), relation, SaidNumbers(said), spread)

    def truths():
        side = chance.choice([-1.0, 1.0], count)
        return said + side * np.where(side == said, 0.1, 1.0) * np.abs(chance.normal(size=count))

    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    radii = fit_conditional_radii(asked, truths(), nothing)
    reach, radius, new = radii.reach(asked), radii.radius[radii.at(0.9), relation], truths()
    too_low, too_high = new < said - radius * reach.below, new > said + radius * reach.above
    for one in (said < 0, said > 0):
        assert 0.03 <= too_low[one].mean() <= 0.07
        assert 0.03 <= too_high[one].mean() <= 0.07
    # As far as the longer side goes, in both directions, would be nearly twice as wide.
    assert (reach.below + reach.above).mean() < 1.2 * np.maximum(reach.below, reach.above).mean()
    kept = radii.scale.to_mapping()
    assert nothing.read(kept, "here").reach(asked).above == pytest.approx(reach.above)
    older = nothing.read({kind: effects for kind, effects in kept.items() if kind != SIDE}, "here").reach(asked)
    assert older.above == pytest.approx(older.below)


def test_errors_that_are_rarely_large_are_held_nearly_as_often_as_others(noisy):
    """Errors of one middle size in all groups; in half of them one in ten goes three times as far as in the rest."""
    chance, table, names = np.random.default_rng(SEED), noisy.split("valid"), noisy.vocabulary
    count, relation, spread = len(table), table.relation.astype(np.int64), np.ones(names.relation_count)
    even = np.array([int(fact.qualifiers[0].value.split()[1]) % 2 == 1 for fact in table.facts(names)])
    said = SaidNumbers(np.zeros(count))
    asked = AskedNumbers.of(table, np.arange(count), np.full(count, TAIL), relation, said, spread)

    def truths():
        return np.exp(np.where(even, 0.4, 1.3) * chance.normal(size=count)) * chance.choice([-1, 1], count)

    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    radii = fit_conditional_radii(asked, truths(), nothing)
    inside = np.abs(truths()) <= radii.radius[radii.at(0.9), relation] * radii.reach(asked).above
    assert inside[even].mean() < 0.98
    assert inside[~even].mean() > 0.84


def test_what_is_kept_says_the_same_when_it_is_read_back(one_number, tmp_path):
    path = shutil.copytree(one_number, tmp_path / "run")
    (path / CALIBRATION).unlink(missing_ok=True)
    made, kept = load(path, "cpu"), load(path, "cpu")
    questions = [(f"thing {index}", "size", "?", [("group", f"group {index}")]) for index in range(4)]
    first, again = ([one[0].interval for one in run.predict_many(questions)] for run in (made, kept))
    assert first == again
    widths = [high - low for low, high in first]
    assert min(widths[0], widths[2]) > 20 * max(widths[1], widths[3])
    assert set(read_index(path / CALIBRATION)["reach"]) == {"constant", "own", *DRAWN, SIDE}


def test_a_calibration_of_0_1_keeps_opening(one_number, tmp_path):
    """It has radii on the model's own scale, and nothing that tells questions of a relation apart."""
    path = shutil.copytree(one_number, tmp_path / "run")
    _ = load(path, "cpu").calibration
    content = {name: value for name, value in read_index(path / CALIBRATION).items() if name not in ("reach", "sha256")}
    content["number"]["size"]["radius"] = {"0.9": 0.25}
    (path / CALIBRATION).write_text(index_text(content | {"schema_version": 1}), encoding="utf-8")
    old = load(path, "cpu")
    assert old.calibration.radii.scale is None
    ends = [old.predict("thing 0", "size", "?", {"group": f"group {group}"})[0].interval for group in (0, 1)]
    width = 2 * 0.25 * old.loaded.scaling.width[old.graph.vocabulary.relation_ids["size"]]
    assert [high - low for low, high in ends] == pytest.approx([width, width])


@pytest.mark.parametrize("wrong", [{"constant": "x"}, {"entity": [1]}, {"constant": float("inf")}, {"own": 2.0}])
def test_damaged_sizes_of_errors_are_refused(one_number, tmp_path, wrong):
    path = shutil.copytree(one_number, tmp_path / "run")
    _ = load(path, "cpu").calibration
    content = {name: value for name, value in read_index(path / CALIBRATION).items() if name != "sha256"}
    content["reach"] |= wrong
    (path / CALIBRATION).write_text(index_text(content), encoding="utf-8")
    with pytest.raises(UsageError, match="sizes of errors"):
        _ = load(path, "cpu").calibration


def test_a_model_that_is_never_wrong_has_intervals_without_width(noisy):
    table, names = noisy.split("valid"), noisy.vocabulary
    count, spread = len(table), np.ones(names.relation_count)
    relation, said = table.relation.astype(np.int64), SaidNumbers(np.zeros(count), np.ones((count, 2)))
    asked = AskedNumbers.of(table, np.arange(count), np.full(count, TAIL), relation, said, spread)
    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)
    with np.errstate(all="raise", under="ignore"):
        radii = fit_conditional_radii(asked, np.zeros(count), nothing)
    reach = radii.reach(asked)
    assert np.isfinite(reach.above).all()
    assert (radii.radius[radii.at(0.9), relation] * reach.above).max() < 1e-6


def test_exact_answers_do_not_make_intervals_endless(noisy):
    """In each group another share of the answers is exact, as of a model that names numbers it has read."""
    chance, table, names = np.random.default_rng(SEED), noisy.split("valid"), noisy.vocabulary
    count, spread, relation = len(table), np.ones(names.relation_count), table.relation.astype(np.int64)
    group = np.array([int(fact.qualifiers[0].value.split()[1]) for fact in table.facts(names)])
    asked = AskedNumbers.of(
        table, np.arange(count), np.full(count, TAIL), relation, SaidNumbers(np.zeros(count)), spread
    )
    nothing = ResidualScale.none(names, np.zeros((names.relation_count, BINS - 1)), spread)

    def truths():
        return np.where(chance.random(count) < group / GROUPS, 1e-8, 1.0) * chance.normal(size=count)

    radii = fit_conditional_radii(asked, truths(), nothing)
    reach, radius, new = radii.reach(asked), radii.radius[radii.at(0.9), relation], truths()
    inside = (-radius * reach.below <= new) & (new <= radius * reach.above)
    assert 0.87 <= inside.mean() <= 0.93
    assert (radius * (reach.below + reach.above)).max() < 6 * np.quantile(np.abs(new), 0.9)
