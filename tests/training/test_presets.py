"""Presets say what the authors published, and defaults fit the graph."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from hynt.config import from_mapping, to_toml
from hynt.errors import UsageError
from hynt.models.registry import MODELS
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import differences
from hynt.training import resolve_settings as resolving
from hynt.training.resolve_settings import PRESETS, SettingsRequest, defaults_for, resolve_settings, resumed_settings
from tests.training.small_graph import small_graph, tiny_settings

# name: rate, epochs, context layers, prediction layers, heads, feed-forward, dropout, smoothing, batch, period
PUBLISHED = {
    "hn-yg-link": (1e-3, 700, 2, 2, 64, 1536, 0.4, 0.7, 2048, 100),
    "hn-yg-relation": (1e-3, 50, 2, 2, 16, 1024, 0.1, 0.5, 2048, 50),
    "hn-yg-number": (1e-3, 350, 2, 2, 16, 1024, 0.1, 0.5, 2048, 50),
    "wd50k-link": (1e-3, 350, 3, 3, 4, 1024, 0.2, 0.7, 2048, 50),
    "wikipeople-link": (1e-3, 350, 3, 3, 16, 1024, 0.2, 0.4, 2048, 50),
    "hn-wk-link": (4e-4, 1050, 4, 4, 8, 2048, 0.15, 0.4, 1024, 150),
    "hn-wk-relation": (4e-4, 1050, 4, 4, 8, 2048, 0.15, 0.4, 1024, 150),
    "hn-wk-number": (1e-3, 750, 2, 2, 16, 1024, 0.1, 0.5, 1024, 50),
    "hn-fb-s-link": (3e-4, 1550, 10, 3, 8, 1024, 0.3, 0.55, 512, 50),
    "hn-fb-s-relation": (3e-4, 600, 6, 3, 4, 2048, 0.35, 0.45, 512, 50),
    "hn-fb-s-number": (1e-3, 750, 2, 2, 16, 1024, 0.2, 0.7, 2048, 50),
    "hn-fb-link": (1e-3, 750, 2, 2, 16, 1024, 0.1, 0.3, 512, 50),
    "hn-fb-relation": (1e-3, 50, 2, 2, 16, 1024, 0.1, 0.3, 512, 50),
    "hn-fb-number": (1e-3, 750, 2, 2, 16, 1024, 0.1, 0.3, 512, 50),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_are_the_authors(name):
    settings = from_mapping(settings_class_for("hynt"), dict(PRESETS.get(name)))
    model = settings.model
    assert PUBLISHED[name] == (
        settings.optimiser.learning_rate,
        settings.schedule.epochs,
        model.context_layers,
        model.prediction_layers,
        model.context_heads,
        model.context_feedforward,
        model.dropout,
        settings.losses.smoothing,
        settings.batch_size,
        settings.schedule.period,
    )
    assert model.dimension == 256
    assert (model.prediction_heads, model.prediction_feedforward) == (model.context_heads, model.context_feedforward)
    assert model.tied_output == (name == "hn-fb-s-link")
    assert settings.optimiser.clip == 0.1
    asked = {"link": "link.all.mrr", "relation": "relation.all.mrr", "number": "number.all.rmse"}
    assert settings.validation.metric == asked[name.rpartition("-")[2]]


# name: where the context starts, the weight of relations: what the authors' table leaves open, chosen on validation
CHOSEN = {"hn-yg-link": (0.03, 1.0), "wd50k-link": (0.3, 0.3), "wikipeople-link": (0.3, 0.3)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_the_authors_left_open_is_as_validation_chose_it(name):
    settings = from_mapping(settings_class_for("hynt"), dict(PRESETS.get(name)))
    assert (settings.model.context_scale, settings.losses.relation_weight) == CHOSEN.get(name, (1.0, 1.0))


@pytest.mark.parametrize("model", ["nalp", "tnalp", "hinge", "neuinfer"])
def test_negatives_come_from_all_possible_answers_but_for_the_authors_own_settings(model):
    pools = {name: PRESETS.get(name)["model"]["pool"] for name in PRESETS if name.startswith(f"{model}-")}
    own = {name: pool for name, pool in pools.items() if name.endswith("-wikipeople")}
    assert {f"{model}-paper", f"{model}-small"} <= set(pools)
    assert set(own.values()) <= {"seen"}
    assert {pool for name, pool in pools.items() if name not in own} == {"answers"}


def test_the_long_preset_differs_from_the_authors_in_length_alone():
    long, authors = dict(PRESETS.get("hn-yg-number-long")), dict(PRESETS.get("hn-yg-number"))
    assert long.pop("schedule") == {"epochs": 750, "period": 50}
    assert authors.pop("schedule") == {"epochs": 350, "period": 50}
    assert long == authors


def test_every_preset_makes_settings_that_can_be_written():
    of_hynt = {*PUBLISHED, "hn-yg-number-long", "world"}
    assert of_hynt <= set(PRESETS)
    for name in PRESETS:  # those of other models begin with the model's name
        model = "hynt" if name in of_hynt else max((m for m in MODELS if name.startswith(f"{m}-")), key=len)
        text = to_toml(from_mapping(settings_class_for(model), dict(PRESETS.get(name))))
        assert f'model_name = "{model}"' in text


class _Sized:
    """As much of a graph as the defaults look at."""

    def __init__(self, facts, entities=10):
        self.splits = {"train": range(facts)}
        self.vocabulary = SimpleNamespace(entity_count=entities)


@pytest.mark.parametrize("facts", [0, 10, 3_000, 24_000, 166_000, 3_000_000, 50_000_000])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_defaults_fit_any_graph(facts, on_gpu):
    settings = from_mapping(settings_class_for("hynt"), dict(defaults_for(_Sized(facts), on_gpu=on_gpu)))
    assert settings.schedule.epochs in settings.schedule.cycle_ends(), "training ends at the end of a cycle"
    assert settings.model.dimension % settings.model.context_heads == 0
    if not on_gpu:
        assert settings.model.dimension <= 128


@pytest.mark.parametrize(
    ("facts", "epochs", "batch"),
    [(0, 1000, 128), (500, 1000, 128), (2_500, 400, 128), (10_000, 100, 256), (50_000, 20, 256)],
)
def test_a_small_graph_sees_as_many_facts_as_another_on_any_device(facts, epochs, batch):
    on_cpu = from_mapping(settings_class_for("hynt"), dict(defaults_for(_Sized(facts), on_gpu=False)))
    assert (on_cpu.schedule.epochs, on_cpu.schedule.period, on_cpu.batch_size) == (epochs, epochs, batch)
    assert (on_cpu.model.dimension, on_cpu.model.context_layers, on_cpu.model.tied_output) == (64, 1, True)
    assert on_cpu == from_mapping(settings_class_for("hynt"), dict(defaults_for(_Sized(facts), on_gpu=True)))


def test_a_sparse_graph_is_held_back_more():
    dense, sparse = (defaults_for(_Sized(3_000, entities), on_gpu=False) for entities in (1_000, 1_001))
    assert (dense["model"]["dropout"], dense["model"]["context_scale"], dense["losses"]["smoothing"]) == (0.1, 1.0, 0.2)
    assert (sparse["model"]["dropout"], sparse["model"]["context_scale"], sparse["losses"]["smoothing"]) == (
        0.2,
        0.1,
        0.4,
    )


def test_many_entities_are_scored_in_half_precision_where_the_processor_multiplies_it(monkeypatch):
    def precision(**said):
        return resolve_settings(SettingsRequest(**said), small_graph(), on_gpu=False).precision

    monkeypatch.setattr(resolving, "multiplies_bf16", lambda: True)
    assert precision() == "auto"  # few entities
    monkeypatch.setattr(resolving, "MANY_ENTITIES", 3)
    assert precision() == "bf16"
    assert precision(changes=["precision=fp32"]) == "fp32"
    assert precision(preset="hn-yg-link") == "auto"
    monkeypatch.setattr(resolving, "multiplies_bf16", lambda: False)
    assert precision() == "auto"


def test_spread_tables_and_the_settings_for_small_graphs_go_together():
    spread = resolve_settings(SettingsRequest(changes=["tables=spread"]), small_graph(), on_gpu=False)
    assert not spread.model.tied_output
    said = SettingsRequest(changes=["tables=spread", "model.tied_output=true"])
    assert resolve_settings(said, small_graph(), on_gpu=False).model.tied_output


def test_wishes_come_last_and_a_short_schedule_has_a_short_cycle():
    request = SettingsRequest(preset="wd50k-link", epochs=20, seed=5, changes=["model.dropout=0.3", "seed=6"])
    settings = resolve_settings(request, small_graph(), on_gpu=True)
    assert (settings.schedule.epochs, settings.schedule.period) == (20, 20)
    assert (settings.seed, settings.model.dropout, settings.losses.smoothing) == (6, 0.3, 0.7)


def test_other_models_do_not_get_hynts_own_settings():
    plain = resolve_settings(SettingsRequest(model="frequency"), small_graph(), on_gpu=False)
    assert (plain.model_name, plain.optimiser.clip, plain.optimiser.learning_rate) == ("frequency", None, 1e-2)
    with pytest.raises(UsageError, match="the preset is for the model 'hynt', not for 'frequency'"):
        resolve_settings(SettingsRequest(model="frequency", preset="world"), small_graph(), on_gpu=False)


@pytest.mark.parametrize("model", [name for name in MODELS if f"{name}-paper" in PRESETS])
def test_a_baseline_without_a_preset_is_the_papers(model):
    found = resolve_settings(SettingsRequest(model), small_graph(), on_gpu=False)
    paper = resolve_settings(SettingsRequest(model, f"{model}-paper"), small_graph(), on_gpu=False)
    assert found == replace(paper, with_statistics=True)  # on one's own graph it answers with statistics beside it


def test_an_inductive_model_without_a_preset_suits_the_device():
    graph, request = small_graph(), SettingsRequest("hynt-inductive")
    on_cpu, on_gpu = (resolve_settings(request, graph, on_gpu=there) for there in (False, True))
    assert (on_cpu.model.dimension, on_cpu.optimiser.method) == (32, "adam")
    assert (on_gpu.model.dimension, on_gpu.optimiser.method, on_gpu.validation.each_task) == (128, "muon", True)
    assert PRESETS.get("hynt-inductive-gpu") == PRESETS.get("hynt-inductive-hn-yg")


def test_resuming_takes_the_settings_as_they_were():
    before = tiny_settings()
    assert differences(before, resumed_settings(SettingsRequest(), before, small_graph(), on_gpu=False)) == []
    changed = resumed_settings(
        SettingsRequest(seed=2, changes=["optimiser.clip=none"]), before, small_graph(), on_gpu=False
    )
    assert differences(before, changed) == ["optimiser.clip: 1.0 → none", "seed: 0 → 2"]
    assert differences(before, resumed_settings(SettingsRequest(preset="world"), before, small_graph(), on_gpu=False))


@pytest.mark.parametrize(
    ("preset", "changes", "shown"),
    [
        (None, (), "hidden"),
        ("hynt-small", (), "hidden"),
        ("wd50k-link", (), "relation"),
        ("world", (), "hidden"),
        (None, ("model.number_of_hidden_relation=entity",), "entity"),
    ],
)
def test_only_published_settings_show_the_number_beside_a_hidden_relation(preset, changes, shown):
    from hynt.training.resolve_settings import SettingsRequest, resolve_settings, resumed_settings
    from tests.training.small_graph import small_graph, tiny_settings

    request, graph = SettingsRequest(preset=preset, changes=changes), small_graph()
    assert resolve_settings(request, graph, on_gpu=False).model.number_of_hidden_relation == shown
    before = tiny_settings()
    assert before.model.number_of_hidden_relation == "relation"
    wanted = shown if changes else "relation"
    assert resumed_settings(request, before, graph, on_gpu=False).model.number_of_hidden_relation == wanted


def test_a_preset_says_its_model_and_is_for_no_other(tmp_path):
    graph = small_graph()
    found = resolve_settings(SettingsRequest(preset="stare-small"), graph, on_gpu=False)
    assert found.model_name == "stare"
    assert found == resolve_settings(SettingsRequest("stare", "stare-small"), graph, on_gpu=False)
    file = tmp_path / "best.toml"
    file.write_text('model_name = "stare"\nbatch_size = 7\n', encoding="utf-8")
    found = resolve_settings(SettingsRequest(preset=str(file)), graph, on_gpu=False)
    assert (found.model_name, found.batch_size) == ("stare", 7)
    with pytest.raises(UsageError, match="the preset is for the model 'stare', not for 'hynt'") as refusal:
        resolve_settings(SettingsRequest("hynt", "stare-small"), graph, on_gpu=False)
    assert refusal.value.advice == "Say --model stare."
