"""The model in its plain form."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakSet

import pytest
import torch
from safetensors.torch import load_file

from hynt.batches.fact_slots import QUALIFIER_ROLE
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.batches.neighbour_values import degrees_of
from hynt.batches.number_scaling import NumberScaling
from hynt.config.declarations import UnfitSettings
from hynt.evaluation.evaluator import Evaluator
from hynt.formats.from_python import graph_from_facts
from hynt.interruption import Stopper
from hynt.models.checking import check_model
from hynt.models.contract import Entities, EntityIds, EntityRange, Relations, ScaledNumber
from hynt.models.hynt_inductive import KEPT_PARTS, HyntInductive, HyntInductiveSettings
from hynt.models.layers.message_passing import FactParts
from hynt.objectives.streams import PhaseSettings
from hynt.runs.checkpoint import Interrupted
from hynt.runs.opening import load_run
from hynt.runs.run_folder import RunFolder
from hynt.runs.scoring import read_tiles
from hynt.training.run import start, train
from tests.batches.random_graphs import mixed_facts
from tests.models.first_steps import CPU, trained
from tests.models.question_batches import every_question, exchanged
from tests.training.small_graph import small_graph, tiny_settings
from tests.training.test_nary_runs import StopAfterFirst

SMALL = HyntInductiveSettings(dimension=16, layers=3, heads=4, feedforward=32, bins=21, plain_numbers="all")
FACTS = mixed_facts(300)


def model_of(facts, settings=SMALL, seed=0):
    torch.manual_seed(seed)
    model = HyntInductive.build(facts.sizes, facts, settings).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.add_(torch.randn_like(one) * 0.2)
    return model


def test_the_contract():
    check_model(lambda sizes, train: HyntInductive.build(sizes, train, SMALL))


def test_heads_must_share_the_dimension():
    with pytest.raises(UnfitSettings, match="the dimension 10 cannot be shared among 4 heads") as refused:
        HyntInductiveSettings(dimension=10)
    assert "such as 12" in refused.value.advice


def test_no_parameter_belongs_to_an_entity_or_relation():
    assert [one.shape for one in model_of(FACTS).parameters()] == [
        one.shape for one in model_of(mixed_facts(50, 9)).parameters()
    ]


def test_a_question_read_from_a_batch_has_the_state_it_has_in_a_training_step():
    model = model_of(FACTS)
    stream = model.phases(FACTS, PhaseSettings(batch_size=30, epochs=1))[0].stream
    stream.observed_share = 1.0  # as when it is asked
    with_entity, with_number, targets = stream.epoch(0, 0).items(0).tensors
    step = stream.step((with_entity, with_number), targets)
    with torch.no_grad():
        outcome = model.read_step(step)
        states = model.encode(FACTS, torch.cat([with_entity, with_number]))
        batch, answers, where = every_question(FACTS, targets)
        asked = model.read_beside(batch, states)
        scale = SMALL.dimension**-0.5
        close = {"rtol": 1e-4, "atol": 1e-4}
        torch.testing.assert_close(outcome.entity_states, model.entity_norm(states.layers[-1].value), **close)
        torch.testing.assert_close(outcome.relation_states, model.relation_norm(states.layers[-1].relation), **close)
        entity, relation = model.entity_norm(asked.encoded) * scale, model.relation_norm(asked.encoded) * scale
        believed = model.distribution(asked).probability
    slots = step.questions.targets
    nth = {int(row): k for k, row in enumerate(targets)}
    starts = {k: int(torch.nonzero((slots.fact == k) & slots.there)[0]) for k in range(len(targets))}
    of_slot = {int(slot): k for k, slot in enumerate(step.entity_question)}
    of_number = {int(slot): k for k, slot in enumerate(step.number_question)}
    for k, (row, position) in enumerate(where):
        slot = starts[nth[row]] + position // 2
        if position == 1:
            torch.testing.assert_close(relation[k], outcome.relation[nth[row]], **close)
        elif position % 2:
            before = int(((slots.role == QUALIFIER_ROLE) & slots.there)[: slot + 1].sum())
            torch.testing.assert_close(relation[k], outcome.relation[len(targets) + before], **close)
        elif answers.task[k] == Task.NUMBER:
            torch.testing.assert_close(believed[k], outcome.number[of_number[slot]].softmax(0), **close)
        else:
            torch.testing.assert_close(entity[k], outcome.entity[of_slot[slot]], **close)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_what_is_asked_for_does_not_reach_its_question_by_a_single_bit(precision):
    model = model_of(FACTS)
    rows = torch.argsort(FACTS.qualifier_counts(), descending=True)[40:52]
    batch, _, where = every_question(FACTS, rows)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
        states = model.encode(FACTS, torch.arange(100, 300))
        before = model.read_beside(batch, states).encoded
        for position in range(9):
            other, _, _ = every_question(exchanged(FACTS, rows, position), rows)
            same = (before == model.read_beside(other, states).encoded).all(1)
            mine = torch.tensor([p == position for _, p in where])
            assert same[mine].all(), position
            assert not same[~mine].all(), position


@pytest.mark.parametrize("half", [False, True])
def test_what_a_training_step_asks_for_does_not_reach_its_question_by_a_single_bit(half):
    model = model_of(FACTS, replace(SMALL, layers=2))
    targets = torch.argsort(FACTS.qualifier_counts(), descending=True)[40:52].sort().values
    others = torch.tensor([row for row in range(100) if row not in targets.tolist()])
    number = FACTS.tail_is_number[others]

    def outcome(facts):
        stream = model.phases(facts, PhaseSettings(batch_size=12, epochs=1))[0].stream
        step = stream.step((others[~number], others[number]), targets)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            return step, model.read_step(step)

    step, before = outcome(FACTS)
    slots = step.questions.targets
    nth = torch.arange(len(slots.role)) - slots.first  # of its fact
    qualifiers = torch.nonzero(slots.there & (slots.role == QUALIFIER_ROLE)).squeeze(1)
    asked = {  # the position that each question asks for
        "entity": torch.where(slots.there & ~slots.is_number, 2 * nth, -1)[step.entity_question],
        "number": torch.where(slots.is_number, 2 * nth, -1)[step.number_question],
        "relation": torch.cat([torch.ones_like(targets), 2 * nth[qualifiers] - 1]),
    }
    for position in range(7):
        _, after = outcome(exchanged(FACTS, targets, position))
        assert torch.equal(before.entity_states, after.entity_states)
        same = {task: (getattr(before, task) == getattr(after, task)).all(1) for task in asked}
        mine = {task: one == position for task, one in asked.items()}
        assert any(one.any() for one in mine.values()), position
        assert all(same[task][mine[task]].all() for task in asked), position
        assert not all(same[task][~mine[task]].all() for task in asked), position


def test_a_step_in_bf16_learns_what_one_in_float32_does():
    model = model_of(FACTS, replace(SMALL, layers=2, dropout=0.0, message_dropout=0.0))
    stream = model.phases(FACTS, PhaseSettings(batch_size=30, epochs=1))[0].stream
    items, slopes = stream.epoch(0, 0).items(0), []
    for half in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            stream.loss_for(items.shape)(model, items.tensors).total.backward()
        assert all(one.grad.dtype == torch.float32 for one in model.parameters())
        slopes.append(torch.cat([one.grad.flatten() for one in model.parameters()]))
    assert 0 < (slopes[0] - slopes[1]).norm() < 0.1 * slopes[0].norm()


def test_facts_in_parts_give_the_same_states():
    model = model_of(FACTS)
    whole, parts = model.encode(FACTS), model.encode(FACTS, at_once=37)
    assert len(FACTS) > 37 * KEPT_PARTS  # some are kept for all layers, some are made anew for each
    for one, other in zip(whole.layers, parts.layers, strict=True):
        torch.testing.assert_close(one.value, other.value, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(one.relation, other.relation, rtol=1e-4, atol=1e-4)


def test_what_is_ready_at_once_is_bounded_whatever_the_graphs_size(monkeypatch):
    """Of twice as many facts no more parts are ready at a time, and none is larger."""
    alive, most, longest = WeakSet(), [0], [0]
    made = FactParts._made

    def counted(self, rows):
        plan, numbers = made(self, rows)
        alive.add(plan)
        most[0] = max(most[0], len(alive))
        longest[0] = max(longest[0], len(plan.message_slot), 2 * len(numbers.encoded))
        return plan, numbers

    monkeypatch.setattr(FactParts, "_made", counted)
    found = []
    for facts in (mixed_facts(300), mixed_facts(600)):
        most[0] = longest[0] = 0
        model_of(facts, replace(SMALL, layers=2)).encode(facts, at_once=30)
        found.append((most[0], longest[0]))
    assert found[1][0] == found[0][0] <= KEPT_PARTS + 2
    assert found[1][1] < 1.5 * found[0][1]


def test_an_entity_that_no_observed_fact_names_ranks_last():
    model = model_of(FACTS)
    states = model.encode(FACTS, torch.arange(8))
    assert not states.seen.all()
    batch, _, _ = every_question(FACTS, torch.arange(60, 64))
    scores = model.score(model.read_beside(batch, states), Entities())
    assert (scores[:, states.seen].min(1).values > scores[:, ~states.seen].max(1).values).all()


def test_scores_of_some_candidates_are_those_of_all():
    model = model_of(FACTS)
    batch, _, _ = every_question(FACTS, torch.arange(5))
    asked = model.read(batch)
    everything = model.score(asked, Entities())
    ids = torch.randint(0, FACTS.sizes.entities, (len(batch), 6))
    torch.testing.assert_close(model.score(asked, EntityRange(10, 40)), everything[:, 10:40])
    torch.testing.assert_close(model.score(asked, EntityIds(ids)), everything.gather(1, ids))
    torch.testing.assert_close(model.score(asked, EntityIds(ids[0])), everything[:, ids[0]])
    assert model.score(asked, Relations()).shape == (len(batch), FACTS.sizes.relations)
    torch.testing.assert_close(model.score(asked, ScaledNumber()), model.distribution(asked).mean())
    torch.testing.assert_close(model.score(asked.take(torch.tensor([2, 0])), Entities()), everything[[2, 0]])


def test_facts_observed_later_change_the_answers_without_training():
    model = model_of(FACTS)
    batch, _, _ = every_question(FACTS, torch.arange(3))
    some, more = model.encode(FACTS, torch.arange(10, 150)), model.encode(FACTS, torch.arange(10, 300))
    one, other = (model.score(model.read_beside(batch, states), Entities()) for states in (some, more))
    assert not torch.equal(one, other)


def test_states_are_kept_until_other_facts_or_other_weights_come():
    model = model_of(FACTS)
    first = model.states()
    model.observe(FACTS)
    assert model.eval().states() is first
    model.observe(mixed_facts(50))
    assert model.states() is not first
    second = model.states()
    with torch.no_grad():
        model.entity_start.add_(1)
    assert model.states() is not second
    third = model.states()
    assert model.train().eval().states() is not third


def test_degrees_are_counts():
    rows = torch.tensor([1, 4, 9, 50])
    found = degrees_of(FACTS, rows)
    entity = torch.zeros(FACTS.sizes.entities, 3)
    relation = torch.zeros(FACTS.sizes.relations, 3)
    for row in rows.tolist():
        entity[FACTS.head[row], 0] += 1
        relation[FACTS.relation[row], int(FACTS.tail_is_number[row])] += 1
        if not FACTS.tail_is_number[row]:
            entity[FACTS.tail_entity[row], 1] += 1
        for q in range(int(FACTS.offsets[row]), int(FACTS.offsets[row + 1])):
            relation[FACTS.qualifier_relation[q], 2] += 1
            if not FACTS.qualifier_is_number[q]:
                entity[FACTS.qualifier_entity[q], 2] += 1
    assert torch.equal(found.entity, entity)
    assert torch.equal(found.relation, relation)


def test_a_number_of_a_relation_without_values_is_read_as_just_a_number():
    model = model_of(FACTS)
    rows = torch.nonzero(FACTS.tail_is_number & (FACTS.qualifier_counts() == 0)).squeeze(1)[:4]
    states = model.encode(FACTS)
    model.features.begin.zero_()  # no relation has values
    other = replace(FACTS, tail_number=1 - FACTS.tail_number)
    heads = [every_question(facts, rows)[0] for facts in (FACTS, other)]
    one, two = (model.read_beside(batch, states).encoded for batch in heads)
    assert torch.equal(one, two)


@pytest.mark.parametrize(("plain", "differs"), [("none", False), ("asked", True), ("all", True)])
def test_a_question_for_a_relation_reads_the_number_as_the_graph_has_it_and_not_on_a_relations_scale(plain, differs):
    model = model_of(FACTS, replace(SMALL, layers=2, plain_numbers=plain))
    number = FACTS.tail_is_number & (FACTS.qualifier_counts() == 1) & FACTS.qualifier_is_number[FACTS.offsets[:-1]]
    rows, states = torch.nonzero(number).squeeze(1)[:3], model.encode(FACTS)
    here, *others = (
        every_question(facts, rows)[0]
        for facts in (
            FACTS,
            replace(FACTS, tail_number=1 - FACTS.tail_number),
            replace(FACTS, tail_value=FACTS.tail_value + 1),
            replace(FACTS, qualifier_number=1 - FACTS.qualifier_number),
            replace(FACTS, qualifier_value=FACTS.qualifier_value + 1),
        )
    )
    before = model.read_beside(here, states).encoded
    for place, (batch, at) in enumerate(zip(others, (1, 1, 3, 3), strict=True)):
        same = (model.read_beside(batch, states).encoded == before).all(1)[here.asked == at]
        assert (~same).all() if differs and place % 2 else same.all(), place


def test_parameters_of_the_default_settings():
    model = HyntInductive.build(FACTS.sizes, FACTS, HyntInductiveSettings())
    d, hidden, bins, features = 128, 256, 101, 71
    node = 8 * d * d + 5 * d + hidden  # queries, keys, values; projection; a net of one hidden layer
    layer = 27 * d * d + 11 * d + 2 * node
    numbers = features * hidden + hidden + hidden * d + d
    answers = d * hidden + hidden + hidden * bins + bins
    nearby, of_relation = 102 * d, d * hidden
    together = 8 * layer + 18 * d + numbers + answers + nearby + of_relation
    assert sum(one.numel() for one in model.parameters()) == together == 5_820_133
    plain = HyntInductiveSettings(nearby_values=False, head_reads_relation=False)
    model = HyntInductive.build(FACTS.sizes, FACTS, plain)
    assert sum(one.numel() for one in model.parameters()) == 5_774_309


GRAPH = small_graph(30)
SETTINGS = {
    "batch_size": 16,
    "optimiser": {"learning_rate": 0.003, "clip": 1.0},
    "schedule": {"epochs": 3, "shape": "linear"},
    "model": {"dimension": 16, "layers": 2, "heads": 4, "feedforward": 32, "bins": 21},
}


def test_the_first_losses():
    without_dropout = SETTINGS | {"model": SETTINGS["model"] | {"dropout": 0.0, "message_dropout": 0.0}}
    _, losses, _ = trained("hynt-inductive", GRAPH, without_dropout, 3)
    assert losses == pytest.approx([2.6829792, 2.5016946, 2.2925323], rel=1e-4)


def test_it_learns_what_towns_people_are_born_in():
    settings = SETTINGS | {"schedule": {"epochs": 40, "shape": "linear"}}
    _, losses, _ = trained("hynt-inductive", GRAPH, settings, 120)
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


MUON = {"learning_rate": 0.003, "clip": 1.0, "method": "muon", "matrix_rate": 0.01, "weight_decay": 0.1}


@pytest.mark.parametrize("optimiser", [SETTINGS["optimiser"], MUON | {"average": 0.8}])
def test_stopped_and_resumed_equals_uninterrupted_byte_for_byte(tmp_path, optimiser):
    torch.set_num_threads(1)
    settings = tiny_settings("hynt-inductive", **SETTINGS | {"optimiser": optimiser})
    whole = train(start(GRAPH, settings, tmp_path / "whole", CPU), CPU)
    stopper = Stopper()
    run = start(GRAPH, settings, tmp_path / "halves", CPU)
    with pytest.raises(Interrupted):
        train(run, CPU, StopAfterFirst(stopper), stopper)
    halves = train(RunFolder.open(run.path), CPU)
    one, other = ((folder.path / "weights.safetensors").read_bytes() for folder in (whole, halves))
    assert one == other


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("inductive") / "run"
    return train(start(GRAPH, tiny_settings("hynt-inductive", **SETTINGS), folder, CPU), CPU)


def test_a_run_is_asked_beside_the_facts_it_was_trained_on_whatever_was_observed_before(run):
    loaded = load_run(run.path)
    table = GRAPH.split("test")
    row, position = torch.zeros(1, dtype=torch.int64).numpy(), torch.full((1,), 2).numpy()

    def answer():
        found = []
        read_tiles(loaded, table, row, position, CPU, lambda tile: found.append(tile.entities()))
        return found[0]

    before = answer()
    loaded.model.observe(FactTensors.from_table(table, GRAPH.vocabulary, loaded.scaling))
    assert torch.equal(answer(), before)


def test_evaluation_gives_the_training_facts_and_says_so(run):
    loaded = load_run(run.path)
    evaluator = Evaluator(GRAPH, loaded.scaling, "test")
    expected = evaluator.evaluate(loaded.model)
    loaded.model.observe(FactTensors.from_table(GRAPH.split("test"), GRAPH.vocabulary, loaded.scaling))
    again = evaluator.evaluate(loaded.model)
    assert again.to_mapping() == expected.to_mapping()
    assert expected.protocol["observed"] == "train"
    assert "observed" not in Evaluator(GRAPH, loaded.scaling, "test").protocol()
    more = Evaluator(GRAPH, loaded.scaling, "test", observed=("train", "test")).evaluate(loaded.model)
    assert more.to_mapping()["link"] != expected.to_mapping()["link"]


# An entity that training never saw, and a graph whose entities and relations are all others.


def test_weights_of_one_graph_load_onto_another_vocabulary(run):
    other = small_graph(50, seed=4)
    assert other.vocabulary.entity_count != GRAPH.vocabulary.entity_count
    table = other.split("train")
    facts = FactTensors.from_table(table, other.vocabulary, NumberScaling.fit([table], other.vocabulary))
    model = HyntInductive.build(facts.sizes, facts, load_run(run.path).settings.model)
    model.load_state_dict(load_file(run.path / "weights.safetensors"))
    found = Evaluator(other, NumberScaling.fit([table], other.vocabulary), "test").evaluate(model.eval())
    assert found.per_question.keys() == {"link", "relation", "number"}


def test_a_new_entity_gets_its_state_from_the_facts_that_name_it():
    """The newcomer stands in copies of another entity's facts: without any training it is known as well as that one."""
    facts = {"train": [(f"person {k}", "born in", f"town {k % 4}") for k in range(16)]}
    facts["train"] += [(f"person {k}", "height", 150.0 + 10 * (k % 4)) for k in range(16)]
    before = graph_from_facts(facts)
    model, _, data = trained("hynt-inductive", before, SETTINGS | {"batch_size": 12}, 200)
    newcomer = [("newcomer", "born in", "town 2"), ("newcomer", "height", 170.0)]
    after = graph_from_facts({"train": facts["train"] + newcomer})
    table = after.split("train")
    observed = FactTensors.from_table(table, after.vocabulary, data.scaling)
    grown = HyntInductive.build(observed.sizes, observed, model.settings)
    grown.load_state_dict(model.state_dict())
    state = grown.eval().states().layers[-1].value
    names = [entity.name for entity in after.entities]
    distance = (state - state[names.index("newcomer")]).norm(dim=1)
    alike, others = ([names.index(f"person {k}") for k in range(16) if (k % 4 == 2) == same] for same in (True, False))
    assert distance[alike].max() < 1e-3
    assert distance[others].min() > 10 * distance[alike].max()
    asked = every_question(observed, torch.tensor([len(table) - 2]))[0]
    scores = grown.score(grown.read(asked), Entities())[2]
    assert bool(torch.isfinite(scores).all())


def test_a_graph_without_numbers_is_asked_as_if_it_had_room_for_them():
    people = [(f"person {k}", "born in", f"town {k % 4}", [("with", f"person {(k + 1) % 16}")]) for k in range(16)]
    graph = graph_from_facts({"train": people})
    table = graph.split("train")
    facts = FactTensors.from_table(table, graph.vocabulary, NumberScaling.fit([table], graph.vocabulary))
    model, batch = model_of(facts), every_question(facts, torch.arange(5))[0]
    found = model.read(batch).encoded
    model._has_numbers = True
    torch.testing.assert_close(model.read(batch).encoded, found)
