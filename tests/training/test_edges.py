"""Every numeric setting at the edges of what it may be: two steps of training stay finite, or it is refused before the
first with its path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch

from hynt.config import with_overrides
from hynt.config.declarations import Range, is_group, settings_of, shape_of
from hynt.errors import UsageError
from hynt.runs.model_choice import settings_class_for
from hynt.training.run import start, train
from tests.training.small_graph import TINY_MODEL, small_graph

CPU = torch.device("cpu")
SMALLEST = 1e-38
"""Of what must be above zero: about the least that single precision holds."""
SMALL = (*TINY_MODEL, "batch_size=32", "schedule.epochs=1", "validation.facts=4")
GRAPH = small_graph()


def edges(cls: type, above: str = "") -> Iterator[tuple[str, float]]:
    """The least and the greatest value of each setting that has one."""
    for name, setting in settings_of(cls).items():
        path, shape = f"{above}{name}", shape_of(setting.annotation)
        if is_group(shape.bare):
            yield from edges(shape.bare, f"{path}.")
        for rule in shape.constraints:
            if not isinstance(rule, Range) or shape.bare not in (int, float):
                continue
            if rule.minimum is not None:
                yield path, SMALLEST if rule.above_minimum else shape.bare(rule.minimum)
            if rule.maximum is not None and rule.maximum <= 1:
                yield path, math.nextafter(rule.maximum, 0) if rule.below_maximum else rule.maximum


@pytest.mark.parametrize(("path", "value"), list(edges(settings_class_for("hynt"))))
def test_a_setting_at_its_edge_trains_or_is_refused_before_the_first_step(tmp_path, path, value):
    try:
        settings = with_overrides(with_overrides(settings_class_for("hynt")(), SMALL), [f"{path}={value!r}"])
        run = start(GRAPH, settings, tmp_path / "run", CPU)
    except UsageError as problem:
        assert path.rpartition(".")[0] in f"{problem.where} {problem.what}"
        assert not (tmp_path / "run").exists()
        return
    train(run, CPU)  # raises where the loss is no longer finite
