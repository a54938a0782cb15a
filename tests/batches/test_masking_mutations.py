"""Wrong hiding must turn a test red: each mutant changes one expression of the source, a leak or a place too far."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.batches import test_masking
from tests.mutants import mutant_of
from tests.objectives import test_masked_epoch

MUTANTS = [
    # leaks
    (
        "batches/masked_batch.py",
        "torch.where(asked == HEAD, sizes.mask_entity, facts.head[rows].long())",
        "facts.head[rows].long()",
    ),
    (
        "batches/masked_batch.py",
        "torch.where(asked == RELATION, sizes.mask_relation, facts.relation[rows].long())",
        "facts.relation[rows].long()",
    ),
    (
        "batches/masked_batch.py",
        "torch.where(tail_masked, sizes.mask_entity, facts.tail_entity[rows].long())",
        "facts.tail_entity[rows].long()",
    ),
    ("batches/masked_batch.py", "torch.where(tail_masked, 0.0, facts.tail_number[rows])", "facts.tail_number[rows]"),
    ("batches/masked_batch.py", "tail_masked & tail_is_number", "tail_masked & ~tail_masked"),
    (
        "batches/masked_batch.py",
        "torch.where(value_masked, 0.0, facts.qualifier_number[slot])",
        "facts.qualifier_number[slot]",
    ),
    (
        "batches/masked_batch.py",
        "torch.where(value_masked, sizes.mask_entity, facts.qualifier_entity[slot].long())",
        "facts.qualifier_entity[slot].long()",
    ),
    ("batches/masked_batch.py", "value_masked & slot_is_number", "value_masked & ~slot_is_number"),
    # one place too far
    ("batches/masked_batch.py", "relation_masked, value_masked = asked", "value_masked, relation_masked = asked"),
    ("batches/masked_batch.py", "at.slot_within < count[at.slot_row]", "at.slot_within <= count[at.slot_row]"),
    (
        "batches/masked_batch.py",
        "start[at.slot_row] + at.slot_within, nowhere",
        "start[at.slot_row] + at.slot_within + 1, nowhere",
    ),
    ("batches/masked_batch.py", "facts.qualifier_at(rows, asked)", "facts.qualifier_at(rows, asked - 2)"),
    ("batches/masked_batch.py", "slot = asked > TAIL", "slot = asked >= TAIL"),
    # the wrong kind
    ("batches/masked_batch.py", "torch.where(asked % 2 == 1", "torch.where(asked % 2 == 0"),
    (
        "batches/masked_batch.py",
        "torch.where(asked == HEAD, facts.head[rows], facts.tail_entity[rows])",
        "facts.tail_entity[rows]",
    ),
    ("batches/masked_batch.py", "tail_is_number & (asked == TAIL)", "tail_is_number"),
    # the plan of an epoch
    ("objectives/masked_facts.py", "asks.cumsum(1) - 1, room)", "asks.cumsum(1), room)"),
    ("objectives/masked_facts.py", "asks = (steps.weights > 0) & (task[facts] == kind)", "asks = task[facts] == kind"),
    ("objectives/masked_facts.py", "[facts, asked[facts]]", "[facts, asked[facts.flip(0)]]"),
    ("objectives/masked_facts.py", 'luck(seed, epoch, "masking")', 'luck(seed, 0, "masking")'),
]


def agrees() -> bool:
    """Whether hiding and planning do what their property tests say; a crash is a disagreement too."""
    shows = test_masking.test_a_batch_shows_the_fact_but_for_the_asked_component_and_answers_hold_that
    comes = test_masked_epoch.test_each_fact_comes_exactly_once_an_epoch
    try:
        for seed in range(6):
            shows.hypothesis.inner_test([0, 1, 2, 3, 5], seed)
            comes.hypothesis.inner_test([0, 1, 1, 2, 0, 7, 12, 3, 0], 4, seed)
        test_masking.test_changing_the_answer_changes_nothing_in_the_batch()
        test_masked_epoch.test_each_fact_comes_once_with_a_long_tail_whose_filler_is_bounded()
        test_masked_epoch.test_shapes_stay_the_same_over_epochs_and_plans_differ()
    except (AssertionError, IndexError, RuntimeError, ValueError):
        return False
    return True


def use(mutant: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the tests call a mutant instead of the source."""
    for name in ("mask", "check_fit", "MaskedFacts"):
        for module in (test_masking, test_masked_epoch):
            if hasattr(mutant, name) and hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(mutant, name))


@pytest.mark.slow
@pytest.mark.parametrize("path, right, wrong", MUTANTS)
def test_a_mutant_is_caught(path, right, wrong, tmp_path, monkeypatch):
    use(mutant_of(path, right, wrong, tmp_path, monkeypatch), monkeypatch)
    assert not agrees()


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted({path for path, _, _ in MUTANTS}))
def test_the_source_itself_agrees(path, tmp_path, monkeypatch):
    use(mutant_of(path, "", "", tmp_path, monkeypatch), monkeypatch)
    assert agrees()
