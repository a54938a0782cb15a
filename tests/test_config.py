from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.config import Range, dump_toml, from_mapping, load_toml, to_mapping, to_toml, with_overrides
from hynt.errors import UsageError
from hynt.limits import LARGEST_FACTOR


@dataclass(frozen=True)
class Optimizer:
    learning_rate: Annotated[float, Range(0, above_minimum=True)] = 4e-4
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Literal["constant", "cosine"] = "cosine"


@dataclass(frozen=True)
class Stop:
    patience: int
    metric: str = "mrr"

    def __post_init__(self) -> None:
        if self.metric == "loss" and self.patience > 100:
            raise ValueError("patience above 100 makes no sense for the loss")


@dataclass(frozen=True)
class Training:
    name: str = "run"
    epochs: Annotated[int, Range(1, 10_000)] = 100
    dropout: Annotated[float, Range(0, 1, below_maximum=True)] = 0.1
    compiled: bool = True
    note: str | None = None
    tasks: tuple[str, ...] = ("link", "number")
    precision: Literal[16, 32] = 32
    optimizer: Optimizer = field(default_factory=Optimizer)
    stop: Stop | None = None
    weights: dict[str, float] = field(default_factory=dict)
    phases: tuple[Stop, ...] = ()


def error(call: Any, *arguments: Any) -> str:
    with pytest.raises(UsageError) as raised:
        call(*arguments)
    return str(raised.value)


def test_builds_nested_settings_with_defaults():
    built = from_mapping(Training, {"epochs": 5, "optimizer": {"betas": [0.5, 1]}, "stop": {"patience": 3}})
    assert built == Training(epochs=5, optimizer=Optimizer(betas=(0.5, 1.0)), stop=Stop(3))
    assert isinstance(built.optimizer.betas[1], float)
    with pytest.raises(FrozenInstanceError):
        built.epochs = 6  # type: ignore[misc]


@pytest.mark.parametrize(
    "mapping, text",
    [
        (
            {"optimizer": {"learning_rte": 1}},
            "optimizer.learning_rte: unknown setting. Did you mean optimizer.learning_rate? "
            "Known here: learning_rate, betas, schedule.",
        ),
        ({"stop": {}}, "stop.patience: a setting is missing. Give a whole number."),
        ({"epochs": True}, "epochs: expected a whole number, found True"),
        ({"epochs": 3.0}, "epochs: expected a whole number, found 3.0"),
        ({"epochs": 0}, "epochs: must be at least 1 and at most 10000, but is 0"),
        ({"dropout": 1}, "dropout: must be at least 0 and below 1, but is 1"),
        ({"dropout": float("nan")}, "dropout: expected a finite number, found nan"),
        ({"dropout": 10**400}, "dropout: the number is too large"),
        ({"dropout": False}, "dropout: expected a number, found False"),
        ({"compiled": 1}, "compiled: expected true or false, found 1"),
        ({"name": 3}, "name: expected a string, found 3"),
        ({"name": "\udcff"}, "name: the text is not valid Unicode"),
        ({"precision": 8}, "precision: expected one of 16, 32, found 8"),
        ({"precision": 32.0}, "precision: expected one of 16, 32, found 32.0"),
        (
            {"optimizer": {"schedule": "cosin"}},
            "optimizer.schedule: expected one of constant, cosine, found 'cosin'. "
            "Did you mean cosine? Known here: constant, cosine.",
        ),
        ({"optimizer": 3}, "optimizer: expected a table, found 3"),
        ({"optimizer": {"betas": [1]}}, "optimizer.betas: expected 2 items, found 1"),
        ({"optimizer": {"learning_rate": 0}}, "optimizer.learning_rate: must be above 0, but is 0"),
        ({"tasks": ["link", 3]}, "tasks[1]: expected a string, found 3"),
        ({"tasks": "link"}, "tasks: expected a list, each item a string, found 'link'"),
        ({"weights": {"link": "x"}}, "weights.link: expected a number, found 'x'"),
        ({"weights": {3: 1.0}}, "weights: expected a string as key, found 3"),
        ({"name": {}}, "name: expected a string, found a table"),
        ({"phases": [{"patience": 1}, {"patence": 1}]}, "phases[1].patence: unknown setting"),
        ({"stop": {"patience": 101, "metric": "loss"}}, "stop: patience above 100 makes no sense for the loss"),
    ],
)
def test_errors_name_the_path_and_the_reason(mapping, text):
    assert error(from_mapping, Training, mapping).startswith(text)


def test_errors_stand_under_a_given_path():
    assert error(from_mapping, Training, {"epoch": 1}, "training").startswith(
        "training.epoch: unknown setting. Did you mean training.epochs?"
    )


@pytest.mark.parametrize(
    "override, expected",
    [
        ("epochs=3", replace(Training(), epochs=3)),
        ("optimizer.learning_rate = 1e-3", replace(Training(), optimizer=Optimizer(learning_rate=1e-3))),
        ("dropout=.05", replace(Training(), dropout=0.05)),
        ("weights.a=2.", replace(Training(), weights={"a": 2.0})),
        ("optimizer.schedule=constant", replace(Training(), optimizer=Optimizer(schedule="constant"))),
        ('optimizer.schedule="constant"', replace(Training(), optimizer=Optimizer(schedule="constant"))),
        ("precision=16", replace(Training(), precision=16)),
        ("name=3", replace(Training(), name="3")),
        ("name=a=b c", replace(Training(), name="a=b c")),
        ("note='none'", replace(Training(), note="none")),
        ("compiled=false", replace(Training(), compiled=False)),
        ('tasks=["link"]', replace(Training(), tasks=("link",))),
        ("stop.patience=3", replace(Training(), stop=Stop(3))),
        ('weights."a.b"=2', replace(Training(), weights={"a.b": 2.0})),
    ],
)
def test_overrides(override, expected):
    assert with_overrides(Training(), [override]) == expected


def test_none_empties_an_optional_setting_and_later_overrides_win():
    assert with_overrides(Training(note="x", stop=Stop(1)), ["note=none", "stop=none"]) == Training()
    assert with_overrides(Training(), ["epochs=3", "epochs=4"]).epochs == 4


@pytest.mark.parametrize(
    "override, text",
    [
        ("epochs", "cannot read the override 'epochs'. Write it as key=value."),
        ("=3", "cannot read the override '=3'. Write it as key=value, with dots between names."),
        ("a b=3", "cannot read the override 'a b=3'. Write it as key=value, with dots between names."),
        ("epochs=many", "epochs: expected a whole number, found 'many'. Write text in quotes"),
        ("epochs=3\ncompiled=false", "epochs: expected a whole number, found '3\\ncompiled=false'"),
        ("epochs=" + "9" * 5000, "epochs: expected a whole number"),
        ("tasks=link", "tasks: expected a list, each item a string, found 'link'. Write text in quotes"),
        ("optimiser.schedule=cosine", "optimiser: unknown setting. Did you mean optimizer?"),
        ("optimizer.rate=1", "optimizer.rate: unknown setting"),
        ("epochs.count=1", "epochs.count: epochs is a whole number and holds no settings of its own"),
        ("optimizer=3", "optimizer: expected a table, found 3"),
    ],
)
def test_override_errors(override, text):
    assert error(with_overrides, Training(), [override]).startswith(text)


def test_toml_is_readable(tmp_path):
    config = Training(name='say "hi"\n', stop=Stop(3), weights={"a.b": 1e-5}, phases=(Stop(1),))
    dump_toml(config, tmp_path / "config.toml")
    assert (tmp_path / "config.toml").read_text().splitlines() == [
        'name = "say \\"hi\\"\\n"',
        "epochs = 100",
        "dropout = 0.1",
        "compiled = true",
        'tasks = ["link", "number"]',
        "precision = 32",
        'phases = [{patience = 1, metric = "mrr"}]',
        "",
        "[optimizer]",
        "learning_rate = 0.0004",
        "betas = [0.9, 0.999]",
        'schedule = "cosine"',
        "",
        "[stop]",
        "patience = 3",
        'metric = "mrr"',
        "",
        "[weights]",
        '"a.b" = 1e-05',
    ]
    assert load_toml(tmp_path / "config.toml", Training) == config


@pytest.mark.parametrize(
    "content, text",
    [
        (b"[optimizer]\nlearning_rte = 1", ": optimizer.learning_rte: unknown setting. Did you mean"),
        (b"epochs = = 3", ": not valid TOML: "),
        (b"name = '\xff'", ": not UTF-8 text. Save the file as UTF-8."),
        (b"#" * 1_000_001, ": too large for a file of settings. Name the right file."),
        (b"a = " + b"[" * 100_000, ": not valid TOML: "),
    ],
)
def test_file_errors_name_the_file(tmp_path, content, text):
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    assert error(load_toml, path, Training).startswith(f"{path}{text}")


def test_missing_file(tmp_path):
    path = tmp_path / "absent.toml"
    assert error(load_toml, path, Training) == (
        f"{path}: cannot read the settings: No such file or directory. Check the path and who may read it."
    )


@dataclass(frozen=True)
class UnsavableNone:
    note: str | None = "x"


@dataclass(frozen=True)
class TwoTypes:
    value: int | str = 3


@dataclass(frozen=True)
class Unsupported:
    value: set[int] = field(default_factory=set)


@pytest.mark.parametrize(
    "cls, text",
    [
        (UnsavableNone, "UnsavableNone.note: a setting that may be None must have None as its default"),
        (TwoTypes, "a setting has one type, or one type and None"),
        (Unsupported, "value: hynt's settings do not support the type"),
    ],
)
def test_declarations_that_could_not_be_kept_are_refused(cls, text):
    with pytest.raises(TypeError, match=text):
        from_mapping(cls, {"value": [1]} if cls is Unsupported else {})


finite = st.floats(-LARGEST_FACTOR, LARGEST_FACTOR)
stops = st.builds(Stop, patience=st.integers(-(2**70), 100), metric=st.text())
optimizers = st.builds(
    Optimizer,
    learning_rate=st.floats(0, LARGEST_FACTOR, exclude_min=True),
    betas=st.tuples(finite, finite),
    schedule=st.sampled_from(["constant", "cosine"]),
)
trainings = st.builds(
    Training,
    name=st.text(),
    epochs=st.integers(1, 10_000),
    dropout=st.floats(0, 1, exclude_max=True),
    compiled=st.booleans(),
    note=st.none() | st.text(),
    tasks=st.lists(st.text(), max_size=3).map(tuple),
    precision=st.sampled_from([16, 32]),
    optimizer=optimizers,
    stop=st.none() | stops,
    weights=st.dictionaries(st.text(), finite, max_size=3),
    phases=st.lists(stops, max_size=2).map(tuple),
)


@given(trainings)
def test_every_config_survives_a_file(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("config") / "config.toml"
    dump_toml(config, path)
    assert load_toml(path, Training) == config
    assert to_toml(load_toml(path, Training)) == to_toml(config)


@given(trainings)
def test_every_config_survives_a_mapping(config):
    assert from_mapping(Training, to_mapping(config)) == config


@given(trainings, st.text(alphabet="abeors.=[]{}'\"1 \n#", max_size=12))
def test_an_override_changes_a_config_or_says_why_not(config, text):
    try:
        changed = with_overrides(config, [text])
    except UsageError as refused:
        assert refused.what
    else:
        assert isinstance(changed, Training)
