"""`hynt sweep` as a person meets it, and its page."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest
import torch

from hynt.graph.storage import save_graph
from hynt.runs.run_folder import RunFolder
from hynt.sweeping.space import shipped, space_from
from tests.conftest import ROOT
from tests.documented import meanings
from tests.training.small_graph import small_graph, tiny_settings

PAGE = (ROOT / "docs" / "how-to" / "sweeping.md").read_text(encoding="utf-8")
SPACE = """
[settings]
batch_size = 16
model = { dimension = 8, context_feedforward = 8, prediction_feedforward = 8 }
schedule = { epochs = 2, period = 2 }

[space]
optimiser.learning_rate = { log_range = [1e-4, 1e-1] }
model.context_heads = { choices = [1, 2], also = ["model.prediction_heads"] }
"""


@pytest.fixture
def people(tmp_path):
    torch.set_num_threads(1)
    save_graph(small_graph(), tmp_path / "people")
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path / "people"


@pytest.fixture
def sweep(hynt, people, tmp_path):
    def command(*arguments):
        given = ("--space", tmp_path / "space.toml", "--out", tmp_path / "out", "--trials", 2, "--device", "cpu")
        return hynt("sweep", people, *given, *arguments)

    return command


def test_from_a_sweep_to_a_run(sweep, hynt, people, tmp_path):
    done = sweep()
    assert done.code == 0, done.err
    assert "note: each trial is validated once" in done.err
    assert "trial 1 complete: link.all.mrr" in done.err
    assert "best on validation: link.all.mrr" in done.out
    preset = tmp_path / "out" / "best.toml"
    assert f"--preset {preset}" in done.out.replace("\n", "")
    done = hynt("train", people, "--preset", preset, "--out", tmp_path / "run", "--device", "cpu")
    assert done.code == 0, done.err
    settings = RunFolder.open(tmp_path / "run").settings()
    assert f"optimiser.learning_rate = {settings.optimiser.learning_rate}" in sweep("--resume").out
    done = hynt("train", people, "--model", "gran", "--preset", preset, "--out", tmp_path / "other")
    assert done.code == 2
    assert "the preset is for the model 'hynt', not for 'gran'" in done.err
    preset.write_text(preset.read_text().replace("dropout", "drop"))
    done = hynt("train", people, "--preset", preset, "--out", tmp_path / "other")
    assert done.code == 2
    assert "best.toml: model.drop" in done.err


def test_the_documented_fields_are_those_printed(sweep):
    result = sweep("--json", "--set", "validation.every=1").json
    documented = meanings("sweep")
    assert set(documented) == set(result)
    for field in ("trials", "best"):
        assert set(result[field]) <= set(re.findall(r"`([a-z_]+)`", documented[field]))


def test_every_space_is_on_the_page():
    assert not {name for name in shipped() if f"`{name}`" not in PAGE}


def test_the_space_of_the_page_is_one(people):
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    space = space_from(tomllib.loads(example), "the page").fitted(tiny_settings())
    assert [one.is_whole for one in space.varied if not one.choices] == [False, False, True]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--space", "hyt"), "there is no space 'hyt'"),
        (("--space", "SPACE/none.toml"), "cannot read the settings"),
        (("--metric", "link.mrr"), "validation has no metric 'link.mrr'"),
        (("--set", "train_on=train+valid"), "judges by the validation split"),
        (("--set", "scale_on=all-splits"), "would look at the test split"),
        (("--sampler", "grid"), "a grid needs choices"),
        (("--storage", "mysql://ann:secret@db/x"), "a sweep cannot be kept in 'mysql'"),
        (("--set", "model.dimensions=3"), "unknown setting"),
    ],
)
def test_wrong_use_is_told_before_any_trial(sweep, tmp_path, arguments, words):
    done = sweep(*arguments)
    assert done.code == 2
    assert words in done.err
    assert "secret" not in done.err + done.out
    assert not list((tmp_path / "out" / "trials").glob("*.toml"))


def test_a_folder_is_used_again_only_when_asked(sweep, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("")
    for arguments, words in (((), "exists already"), (("--resume",), "is not the folder of a sweep")):
        done = sweep(*arguments)
        assert done.code == 2
        assert words in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_without_optuna_the_word_says_how_to_get_it(sweep, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = sweep()
    assert done.code == 2
    assert "pip install 'hynt[sweep]'" in done.err
    assert not (tmp_path / "out").exists()


def test_when_nothing_works_the_reason_is_told(sweep, tmp_path):
    heads = "[space]\nmodel.context_heads = { choices = [3, 5] }\n[settings]\nmodel.dimension = 8\n"
    (tmp_path / "space.toml").write_text(heads)
    done = sweep("--json")
    assert done.code == 1
    assert "cannot be shared among 5 heads" in done.json["error"]["what"]
    assert "no trial came to an end" in done.err
    assert "cannot be shared among 3 heads" in done.err


def test_a_sweep_of_other_epochs_moves_what_is_counted_in_them(sweep, tmp_path):
    text = SPACE.replace("epochs = 2, period = 2", "epochs = 40, period = 40")
    text = (
        'relative_to_epochs = ["schedule.period", "validation.every"]\n'
        + text
        + "\n[settings.validation]\nevery = 20\n"
    )
    (tmp_path / "space.toml").write_text(text)
    done = sweep("--epochs", 2)
    assert done.code == 0, done.err
    told = "the space is for another number of epochs; for 2 of them schedule.period is 2, validation.every is 1."
    assert f"note: {told}" in done.err
    assert "validated once" not in done.err
    trial = tomllib.loads((tmp_path / "out" / "trials" / "0000.toml").read_text())
    assert (trial["schedule"]["epochs"], trial["schedule"]["period"], trial["validation"]["every"]) == (2, 2, 1)
    done = sweep("--epochs", 2, "--set", "validation.every=2", "--out", tmp_path / "other")
    assert done.code == 0, done.err
    assert "for 2 of them schedule.period is 2." in done.err
    trial = tomllib.loads((tmp_path / "other" / "trials" / "0000.toml").read_text())
    assert trial["validation"]["every"] == 2  # what is said goes first
