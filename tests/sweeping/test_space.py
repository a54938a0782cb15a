"""Spaces: what a file may say, what is refused and where, and that the shipped ones are the papers'."""

from __future__ import annotations

import tomllib
from itertools import product

import optuna
import pytest

from hynt.config import from_mapping, to_mapping, with_overrides
from hynt.errors import UsageError
from hynt.models.registry import MODELS
from hynt.runs.model_choice import settings_class_for
from hynt.sweeping.space import load_space, shipped, space_from
from hynt.training.resolve_settings import GRIDS
from tests.training.small_graph import tiny_settings


def space(text: str):
    return space_from(tomllib.loads(text), "S.toml")


def settings_of(model: str, mapping):
    return from_mapping(settings_class_for(model), dict(mapping))


@pytest.mark.parametrize("model", GRIDS)
def test_the_space_of_a_baseline_is_the_grid_of_the_paper(model):
    grid = [settings_of(model, preset) for preset in GRIDS[model]]
    base = with_overrides(grid[0], load_space(model).fixed)
    found = load_space(model).fitted(base)
    axes = found.grid()
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    swept = [with_overrides(base, found.changes(point)) for point in points]
    assert len(swept) == len(grid)
    assert all(settings in swept for settings in grid)


def test_every_model_that_learns_has_a_space_and_every_space_fits_its_model():
    learned = {name for name, entry in MODELS.items() if name in GRIDS or name == "hynt"}
    assert learned <= set(shipped())
    for name in shipped():
        model = name if name in MODELS else "hynt"
        base = with_overrides(settings_of(model, GRIDS[model][0] if model in GRIDS else {}), load_space(name).fixed)
        assert load_space(name).fitted(base).varied


@pytest.mark.parametrize("name", shipped())
def test_whatever_is_drawn_from_a_space_can_be_trained(name):
    """By Optuna itself, with the space's epochs and with others: the model's own checks see what goes together."""
    model = name if name in MODELS else "hynt"
    base = settings_of(model, GRIDS[model][0] if model in GRIDS else {})
    for epochs in (with_overrides(base, load_space(name).fixed).schedule.epochs, 12):
        found, _ = load_space(name).for_epochs(epochs)
        settings = with_overrides(base, [*found.fixed, f"schedule.epochs={epochs}"])
        fitted, study = found.fitted(settings), optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        drawn = [with_overrides(settings, fitted.changes(fitted.suggest(study.ask()))) for _ in range(20)]
        assert len({str(to_mapping(one)) for one in drawn}) > 3
        assert model != "hynt" or max(one.schedule.period for one in drawn) <= epochs


def test_the_space_of_hynt_has_the_ranges_of_its_authors():
    varied = {one.path: one for one in load_space("hynt").varied}
    assert varied["optimiser.learning_rate"].choices == (3e-4, 4e-4, 5e-4, 1e-3)
    assert varied["model.context_layers"].choices == varied["model.prediction_layers"].choices == (2, 3, 4)
    assert varied["model.context_heads"].choices == (4, 8, 16, 32, 64)
    assert varied["model.context_feedforward"].choices == (1024, 1536, 2048)
    assert (varied["model.dropout"].low, varied["model.dropout"].high) == (0.1, 0.5)
    assert (varied["losses.smoothing"].low, varied["losses.smoothing"].high) == (0.3, 0.7)
    assert varied["batch_size"].choices == (512, 1024, 2048)
    assert varied["schedule.period"].choices == (50, 100, 150)
    of_fb = {one.path: one for one in load_space("hynt-hn-fb-s").varied}
    assert of_fb["model.context_layers"].high == 10
    assert of_fb["model.tied_output"].choices == (False, True)


def test_what_is_counted_in_epochs_moves_along_with_them():
    found = load_space("hynt")
    assert found.for_epochs(1050) == (found, {})
    moved, told = found.for_epochs(105)
    assert told == {"validation.every": (5,), "schedule.period": (5, 10, 15)}
    assert "validation.every=5" in moved.fixed
    assert {one.path: one.choices for one in moved.varied}["schedule.period"] == (5, 10, 15)
    assert [one for one in moved.varied if one.path != "schedule.period"] == [
        one for one in found.varied if one.path != "schedule.period"
    ]
    few, told = found.for_epochs(7)  # no two choices alike, none below one epoch, and none beyond the end
    assert {one.path: one.choices for one in few.varied}["schedule.period"] == (1,)
    assert told["validation.every"] == (1,)
    text = 'relative_to_epochs = ["schedule.period"]\n[settings]\nschedule.epochs = 40\n'
    ranged = space(text + "[space]\nschedule.period = { range = [4, 20] }")
    assert [(one.low, one.high) for one in ranged.for_epochs(80)[0].varied] == [(8, 40)]
    assert [one.choices for one in ranged.for_epochs(2)[0].varied] == [(1,)]


class First:
    """A trial that always suggests the upper end or the last choice."""

    def suggest_categorical(self, name, choices):
        return choices[-1]

    def suggest_float(self, name, low, high, *, step, log):
        return high

    def suggest_int(self, name, low, high, *, step, log):
        return high


def test_settings_move_together_and_dotted_paths_may_be_quoted():
    found = space('[space]\n"model.context_heads" = { choices = [2, 4], also = ["model.prediction_heads"] }')
    settings = tiny_settings()
    changed = with_overrides(settings, found.changes(found.fitted(settings).suggest(First())))
    assert (changed.model.context_heads, changed.model.prediction_heads) == (4, 4)


def test_a_range_of_whole_numbers_holds_fractions_where_the_setting_does():
    found = space("[space]\nlosses.number_weight = { range = [1, 3] }\nbatch_size = { range = [8, 64], step = 8 }")
    weight, batch = found.fitted(tiny_settings()).varied
    assert (weight.low, weight.is_whole) == (1.0, False)
    assert batch.is_whole
    assert batch.suggest(First()) == 64


def test_values_are_written_as_a_person_would():
    (dropout,) = space("[space]\nmodel.dropout = { range = [0.1, 0.5], step = 0.1 }").varied
    assert dropout.changes(0.1 + 0.2) == ["model.dropout=0.3"]


@pytest.mark.parametrize(
    "text, where, what",
    [
        ("[space]\nmodel.drop_out = { range = [0.1, 0.5] }", "S.toml: space.model.drop_out", "unknown setting"),
        ("[space]\nmodel.dropout = { range = [0.1, 1.5] }", "S.toml: space.model.dropout", "must be at least 0"),
        ("[space]\nmodel.dimension = { choices = [32, 'a'] }", "S.toml: space.model.dimension", "expected a whole"),
        ("[space]\nmodel.context_heads = { choices = [2], also = ['model.heads'] }", "space.model.heads", "unknown"),
    ],
)
def test_a_value_that_its_setting_cannot_take_is_named(text, where, what):
    with pytest.raises(UsageError) as problem:
        space(text).fitted(tiny_settings())
    assert where in problem.value.where
    assert what in problem.value.what


@pytest.mark.parametrize(
    "text, where, what",
    [
        ("[space]\nmodel.dropout = 0.5", "S.toml: space.model.dropout", "expected a table, found 0.5"),
        ("[space]\nmodel.dropout = { rnge = [0, 1] }", "S.toml: space.model.dropout", "unknown key 'rnge'"),
        ("[space]\nmodel.dropout = { step = 1 }", "S.toml: space.model.dropout", "expected one of choices, range"),
        ("[space]\na = { range = [1, 2], choices = [1] }", "S.toml: space.a", "found choices and range"),
        ("[space]\na = { range = [2, 1] }", "S.toml: space.a", "low below high"),
        ("[space]\na = { log_range = [0, 1] }", "S.toml: space.a", "both above 0"),
        ("[space]\na = { log_range = [1, 9], step = 2 }", "S.toml: space.a", "log_range has none"),
        ("[space]\na = { range = [1, 9], step = 0 }", "S.toml: space.a", "step is a number above 0"),
        ("[space]\na = { choices = [] }", "S.toml: space.a", "choices is a list"),
        ("[space]\na = { choices = [1, 1] }", "S.toml: space.a", "listed twice"),
        ("[space]\na = { choices = [[1]] }", "S.toml: space.a", "choices is a list"),
        ("[space]\na = { choices = [1], also = 'b' }", "S.toml: space.a", "also lists"),
        ("[space]\na = { choices = [1], also = ['b'] }\nb = { choices = [2] }", "S.toml: space.b", "varied twice"),
        ("[spaces]\na = { choices = [1] }", "S.toml: spaces", "unknown table"),
        ("[settings]\na = 1", "S.toml", "varies nothing"),
        ("space = 3", "S.toml: space", "expected a table"),
        ("relative_to_epochs = 3\n[space]\na = { choices = [1] }", "S.toml: relative_to_epochs", "a list of the paths"),
        (
            "relative_to_epochs = ['a']\n[space]\na = { choices = [1] }",
            "S.toml: relative_to_epochs",
            "it takes schedule.epochs under [settings]",
        ),
        (
            "relative_to_epochs = ['b']\n[settings]\nschedule.epochs = 9\n[space]\na = { choices = [1] }",
            "S.toml: relative_to_epochs",
            "'b' is not a whole number",
        ),
        (
            "relative_to_epochs = ['a']\n[settings]\nschedule.epochs = 9\n[space]\na = { range = [1, 9], step = 2 }",
            "S.toml: relative_to_epochs",
            "'a' is not a whole number",
        ),
    ],
)
def test_a_wrong_line_is_refused_by_its_path(text, where, what):
    with pytest.raises(UsageError) as problem:
        space(text)
    assert problem.value.where == where
    assert what in problem.value.what


def test_a_space_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="Did you mean hynt"):
        load_space("hyt")
    with pytest.raises(UsageError, match="cannot read the settings"):
        load_space(str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_text("[space\n")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_space(str(tmp_path / "bad.toml"))


def test_a_grid_needs_choices():
    with pytest.raises(UsageError, match=r"space\.a: a grid needs choices"):
        space("[space]\na = { range = [1, 2] }").grid()
