"""Facts of hundreds of qualifiers, on which the paper could not run these models: they train, and answer."""

from __future__ import annotations

import pytest
import torch

from hynt.batches.buckets import layout_of
from hynt.batches.masked_batch import mask
from hynt.evaluation.evaluator import evaluate
from hynt.formats.from_python import graph_from_facts
from hynt.models.contract import Entities
from tests.models.first_steps import trained

LONGEST = 358
TINY = {"dimension": 8, "layers": 1, "heads": 1, "feedforward": 8}


def long_graph():
    short = [(f"entity {i}", "near", f"entity {(i + 1) % 20}", [("year", 1990 + i % 3)]) for i in range(20)]
    many = [("voter" if i % 2 else "score", f"entity {i % 20}" if i % 2 else float(i)) for i in range(LONGEST)]
    return graph_from_facts(
        {
            "train": [*short, ("entity 0", "elected", "entity 5", many), ("entity 3", "elected", "entity 5", many[5:])],
            "test": [("entity 1", "elected", "entity 5", many[::-1]), ("entity 4", "near", "entity 9")],
        }
    )


@pytest.mark.parametrize(
    "name, own", [("hy-transformer", {}), ("stare", {"graph_layers": 1}), ("gran", {"instances": 2})]
)
def test_long_facts_are_trained_on_and_asked_about(name, own):
    graph = long_graph()
    settings = {"batch_size": 16, "model": TINY | own}
    model, losses, data = trained(name, graph, settings, 6)
    assert all(torch.isfinite(torch.tensor(losses)))
    if name != "gran":  # which answers all its 719 components: a few are enough
        found = evaluate(model, graph, data.scaling, "test", literals=data.literals)
        assert len(found.per_question["link"].row) == 4
        return
    rows = torch.nonzero(data.facts.qualifier_counts() == LONGEST).squeeze(1)
    asked = torch.tensor([0, 2, 6, 2 * LONGEST])
    batch, _ = mask(data.facts, rows.expand(4), asked, layout_of([(4, LONGEST)]))
    with torch.no_grad():
        assert torch.isfinite(model.score(model.read(batch), Entities())).all()
