"""An audit, start to end, on small graphs: what is planted is found, what is done is not done again."""

from __future__ import annotations

import shutil
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from hynt.auditing.auditing import SCHEMA
from hynt.errors import UsageError
from hynt.formats.from_python import graph_from_facts
from hynt.front.auditing import audit
from hynt.graph.fact import DATE_UNIT, Number
from hynt.graph.storage import save_graph
from hynt.graph.units.dates import parse_iso_date
from hynt.runs.checkpoint import Interrupted
from hynt.training.run import start, train
from tests.heard_progress import HeardProgress
from tests.training.small_graph import TINY_MODEL, tiny_settings
from tests.trends.series_graph import PLANTED, SERIES, series_facts, series_graph

TINY = (
    "batch_size=32",
    "optimiser.learning_rate=0.005",
    "optimiser.clip=1.0",
    "losses.smoothing=0.1",
    *TINY_MODEL,
    "model.dropout=0.1",
)
CPU = torch.device("cpu")


def tiny_audit(source, work, **options):
    return audit(source, work=work, device="cpu", changes=TINY, **{"folds": 3, "epochs": 4, **options})


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series") / "graph"
    save_graph(series_graph(), folder)
    return folder


@pytest.fixture(scope="module")
def found(graph, tmp_path_factory):
    return tiny_audit(graph, tmp_path_factory.mktemp("audit") / "work", epochs=60)


class TestWhatIsFound:
    def test_ninety_one_seasons_are_among_the_first(self, found):
        (planted,) = [row for row in found.top(3) if (row["head"], row["relation"]) == PLANTED[:2]]
        assert planted["stored_value"] == PLANTED[2]
        assert (planted["component"], planted["kind"]) == ("tail", "number")
        assert planted["residual"] > 3
        assert planted["low"] < planted["said_value"] < planted["high"] < planted["stored_value"]

    def test_every_fact_is_judged_once_by_a_model_without_it(self, found):
        plan = found.plan
        assert sorted(found.fact.tolist()) == list(range(5 * SERIES))
        assert not len(found.not_judged)
        judge = {int(fact): part for part, fact in zip(found.found.part, found.found.stored.row, strict=True)}
        for fact, part in judge.items():
            fold = found.parts[part].fold
            assert not plan.folds.training(plan.in_training, fold)[fact]

    def test_every_component_is_asked(self, found):
        assert len(found.found.score) == int((3 + 2 * found.plan.table.qualifier_counts()).sum())
        assert found.not_asked() == 0

    def test_ranks_follow_scores(self, found):
        assert (np.diff(found.score) <= 0).all()
        assert np.isfinite(found.score).all()
        probability = np.exp(found.found.log_probability)
        assert ((probability > 0) & (probability <= 1)).all()
        assert (found.found.log_probability <= found.found.best_log_probability + 1e-9).all()

    def test_known_other_answers_do_not_count_against_a_fact(self, found):
        """Ten series share each network: none is less likely as a head because nine others are right, too."""
        stored, starts = found.found.stored, found.found.place
        heads = (stored.position == 0) & (stored.kind == 0)
        assert starts[heads].max() <= found.plan.graph.vocabulary.entity_count - SERIES // 10 + 1


class TestFile:
    def test_one_row_a_fact(self, found, tmp_path):
        out = tmp_path / "suspicious.parquet"
        assert found.write(out) == 5 * SERIES
        table = pq.read_table(out)
        assert table.schema.names == SCHEMA.names
        assert table["rank"].to_pylist() == list(range(1, 5 * SERIES + 1))
        assert set(table["judge"].to_pylist()) == {"fold-1", "fold-2", "fold-3"}
        (row,) = [row for row in table.slice(0, 3).to_pylist() if row["fact"] == "Glee · number of seasons · 91"]
        split = found.plan.graph.split(row["split"])
        (fact,) = split.take(np.array([row["row"]])).facts(found.plan.graph.vocabulary)
        assert (fact.head, fact.relation, fact.tail.value) == PLANTED

    def test_one_row_a_component(self, found, tmp_path):
        out = tmp_path / "components.parquet"
        assert found.write(out, components=True) == len(found.found.score)
        table = pq.read_table(out).to_pandas()
        assert table["rank"].is_monotonic_increasing
        worst = table.groupby("rank", sort=True)["component_score"].max().to_numpy()
        assert np.array_equal(worst, found.found.score[found.worst])

    def test_pandas_has_the_same_columns(self, found):
        frame = found.to_pandas()
        assert list(frame.columns) == SCHEMA.names
        assert len(frame) == 5 * SERIES


def test_facts_that_cannot_be_judged_are_listed_with_the_reason(tmp_path):
    facts = [*series_facts(), ("series 3", "network", "pirate radio")]
    save_graph(graph_from_facts({"train": facts}, name="one more"), tmp_path / "graph")
    found = tiny_audit(tmp_path / "graph", tmp_path / "work", epochs=1, folds=2)
    assert found.reasons() == {"an entity or relation occurs nowhere else": 1}
    last = list(found.rows())[-1]
    assert (last["fact"], last["reason"]) == ("series 3 · network · pirate radio", "'pirate radio' occurs nowhere else")
    assert "rank" not in last
    found.write(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["rank"].null_count == 1


class _Stopping(HeardProgress):
    """Ctrl-C at the n-th epoch, or when the first questions are answered."""

    def __init__(self, epoch: int | None) -> None:
        def stop(update) -> None:
            if (update.stage == "judging" and epoch is None) or (update.stage == "epoch" and self.epochs == epoch):
                signal.raise_signal(signal.SIGINT)

        super().__init__(stop)

    @property
    def epochs(self) -> int:
        return sum(update.stage == "epoch" for update in self.updates)


@pytest.fixture(scope="module")
def uninterrupted(graph, tmp_path_factory):
    return tiny_audit(graph, tmp_path_factory.mktemp("whole") / "work")


@pytest.mark.parametrize("epoch", [2, 6, None])
def test_an_interrupted_audit_goes_on_to_the_same_end(graph, uninterrupted, tmp_path, epoch):
    watcher = _Stopping(epoch)
    with pytest.raises(Interrupted, match="Say the same command again"):
        tiny_audit(graph, tmp_path / "work", progress=watcher)
    counting = _Stopping(-1)
    again = tiny_audit(graph, tmp_path / "work", progress=counting)
    assert watcher.epochs + counting.epochs == 3 * 4
    assert np.array_equal(again.fact, uninterrupted.fact)
    assert np.array_equal(again.score, uninterrupted.score)


def test_another_audit_does_not_take_over_the_work(graph, tmp_path):
    tiny_audit(graph, tmp_path / "work", epochs=1, folds=2)
    with pytest.raises(UsageError, match=r"that of another job: settings\.schedule\.epochs: 1 → 2"):
        tiny_audit(graph, tmp_path / "work", epochs=2, folds=2)
    with pytest.raises(UsageError, match="folds: 2 → 3"):
        tiny_audit(graph, tmp_path / "work", epochs=1, folds=3)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something other than the work of a job"):
        tiny_audit(graph, tmp_path / "other", epochs=1, folds=2)


@pytest.fixture(scope="module")
def series_run(tmp_path_factory):
    settings = tiny_settings(batch_size=32, schedule={"epochs": 6, "period": 6})
    return train(start(series_graph(), settings, tmp_path_factory.mktemp("run") / "run", CPU), CPU).path


class TestRun:
    def test_a_run_judges_what_it_has_not_seen_without_any_training(self, series_run, tmp_path):
        watcher = _Stopping(-1)
        found = audit(
            series_run, splits=["valid", "test"], folds=3, device="cpu", work=tmp_path / "work", progress=watcher
        )
        assert watcher.epochs == 0
        assert {part.name for part in found.parts} == {"run-1", "run-2", "run-3"}
        graph = found.plan.graph
        assert len(found) == len(graph.split("valid")) + len(graph.split("test"))
        assert {list(graph.splits)[found.plan.split[fact]] for fact in found.fact.tolist()} == {"valid", "test"}

    def test_training_facts_are_judged_by_folds_with_the_settings_of_the_run(self, series_run, tmp_path):
        found = audit(series_run, folds=2, epochs=2, device="cpu", work=tmp_path / "work")
        assert {part.name for part in found.parts} == {"fold-1", "fold-2", "run-1", "run-2"}
        assert found.plan.settings.model.dimension == 16
        assert (found.plan.settings.schedule.epochs, found.plan.settings.schedule.period) == (2, 2)
        trained = len(found.plan.graph.split("train"))
        for part in found.parts:
            assert all((fact >= trained) == part.by_run for fact in part.facts.tolist())

    def test_a_changed_run_is_refused(self, series_run, tmp_path):
        copy = shutil.copytree(series_run, tmp_path / "copy")
        (copy / "config.toml").write_text((copy / "config.toml").read_text().replace("seed = 0", "seed = 1"))
        with pytest.raises(UsageError, match="the file was changed"):
            audit(copy, splits=["test"], device="cpu", work=tmp_path / "work")
        assert not (tmp_path / "work").exists()


def test_time_series_stay_together(graph, tmp_path):
    found = tiny_audit(graph, tmp_path / "work", folds=2, epochs=1, fold_by="head,relation", splits=["train"])
    table, folds = found.plan.table, found.plan.folds
    for fact in found.fact.tolist():
        same = (table.head == table.head[fact]) & (table.relation == table.relation[fact])
        assert not folds.training(found.plan.in_training, int(folds.fold[fact]))[same].any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"splits": ["tests"]}, "this graph has no split 'tests'"),
        ({"splits": []}, "no split was given"),
        ({"folds": 1}, "1 is not a number of folds"),
        ({"fold_by": "value"}, "folds cannot be made by 'value'"),
        ({"preset": "nothing"}, "unknown preset 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_made(graph, tmp_path, options, text):
    with pytest.raises(UsageError, match=text):
        tiny_audit(graph, tmp_path / "work", **options)
    assert not (tmp_path / "work").exists()


def test_stored_dates_are_told_as_precisely_as_they_came(tmp_path):
    """The fact said 2024-05-03 10:05, and what looked wrong of it 2024-05-03."""
    facts = [
        (f"e{i % 7}", "opened", date(f"2024-05-{1 + i % 28:02}T10:05"), [("seen", date(f"2024-{1 + i % 12:02}"))])
        for i in range(30)
    ]
    found = tiny_audit(graph_from_facts({"train": facts}), tmp_path / "work", epochs=1, folds=2)
    told = {(row["component"], row["stored"]) for row in found.to_arrow(components=True).to_pylist()}
    assert ("tail", "2024-05-03 10:05") in told
    assert ("value of qualifier 1", "2024-03") in told


def date(written: str) -> Number:
    return Number(parse_iso_date(written)[0], written, DATE_UNIT)
