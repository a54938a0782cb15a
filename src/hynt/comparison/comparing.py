"""Many models on one graph, one after the other, each within the same time: what `hynt compare` does.

    DIR/runs/MODEL-SEED/     the run of each model, to be asked or evaluated further
        rows/MODEL-SEED.json its row
        trivial.json         the rows of models that learn nothing

A row that is there is not made again, and a run that was stopped goes on: the same call finishes what another began.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hynt.comparison.trial import Trial, TrialPlace, run_trial, trivial_rows
from hynt.config import to_mapping
from hynt.errors import HyntError, UsageError
from hynt.files import changes, index_text, read_index, write_whole
from hynt.graph.content_hash import graph_differences, graph_fingerprints
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.models.registry import MODELS
from hynt.names import plural
from hynt.progress import Progress, duration
from hynt.runs.checkpoint import EpochRecord, Interrupted, TrainingProgress, ValidationRecord
from hynt.training.resolve_settings import PRESETS

FACTS_VALIDATED = 500


def model_names(text: str) -> list[str]:
    """Models by name, with commas between; `all` is every model that learns by steps."""
    found: list[str] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        if name == "all":
            found += [model for model, entry in MODELS.items() if entry.learns]
        elif not MODELS.get(name).learns:
            raise UsageError(
                f"{name} learns nothing; its row stands in every comparison anyway.",
                where="--models",
                advice="Leave it out.",
            )
        else:
            found.append(name)
    if not found:
        raise UsageError("no model was named.", where="--models", advice="Say --models all, or names from hynt models.")
    return list(dict.fromkeys(found))


def trial_for(model: str, graph: KnowledgeGraph, device: torch.device, seed: int, seconds: float) -> Trial:
    """A model's small preset on a CPU, that of its paper's comparison on a GPU; HyNT's settings for the graph's size.

    The schedule is the paper's, stretched or cut to the seconds, so that every model has the same time.
    """
    facts = len(graph.splits.get("valid", ()))
    sample = FACTS_VALIDATED if facts > FACTS_VALIDATED else None
    preset, changes = None, ["with_statistics=true"]
    if device.type != "cuda" and model != "hynt" and f"{model}-small" in PRESETS:
        preset = f"{model}-small"
        longest = f"{model}-paper" if f"{model}-paper" in PRESETS else preset
        epochs = PRESETS.get(longest)["schedule"]["epochs"]
        changes += [f"schedule.epochs={epochs}", f"schedule.period={_period(preset, epochs)}"]
    return Trial(model, preset, seed, seconds, validation_facts=sample, changes=tuple(changes), fills_time=True)


def _period(preset: str, epochs: int) -> int:
    """Of a cosine, all epochs; a rate that falls in steps keeps them."""
    schedule = PRESETS.get(preset)["schedule"]
    return epochs if schedule.get("shape", "cosine") == "cosine" else schedule.get("period", 50)


class _TrialProgress(TrainingProgress):
    """Says how far a model's training is by the clock, which is what ends it."""

    def __init__(self, progress: Progress, name: str, limit: float) -> None:
        super().__init__(progress)
        self.name, self.limit = name, limit

    def epoch_done(self, record: EpochRecord) -> None:
        self.seconds += record.seconds
        self.update(record.epoch, record.loss_text)

    def validated(self, record: ValidationRecord) -> None:
        self.update(record.epoch, f"validation {record.metric} {record.value:.4f}", always=True)

    def update(self, epoch: int, news: str = "", *, always: bool = False) -> None:
        share = min(self.seconds / self.limit, 1.0) if self.limit else None
        minutes = f"{self.seconds / 60:.1f} of {self.limit / 60:g} min"
        time_of = minutes if self.limit >= 60 else f"{self.seconds:.0f} of {self.limit:g} s"
        note = f"{time_of}, {news}" if news else time_of
        self.progress.update(self.name, epoch, unit="epochs", share=share, note=note, always=always)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is compared, and where it is kept."""

    folder: Path
    place: TrialPlace
    trials: Sequence[Trial]

    def run(self, progress: Progress, stopper: Stopper) -> dict[str, Any]:
        """All rows. A model that fails is recorded and ends nothing else; an interruption does."""
        (self.folder / "rows").mkdir(parents=True, exist_ok=True)
        self._refuse_another_graph()
        self._refuse_other_settings()
        trivial = self._trivial()
        rows, failed = [], {}
        for index, trial in enumerate(self.trials, 1):
            news = _TrialProgress(progress, f"{trial.model} ({index} of {len(self.trials)})", trial.seconds or 0.0)
            news.update(0, always=True)
            try:
                row = self._row(trial, news, stopper)
            except Interrupted:
                raise
            except (HyntError, RuntimeError, ValueError, MemoryError) as problem:
                failed[_key(trial)] = str(problem) or type(problem).__name__
                progress.note(f"{trial.model} failed: {failed[_key(trial)]}")
                continue
            rows.append(row)
            count, planned = row["epochs"], row["schedule_epochs"]
            epochs = f"{plural(count, 'epoch')} ({planned:,} in its own schedule)"
            progress.say(f"{news.name}: done, {epochs} in {duration(row['train_seconds'])}")
            if stopper.asked:
                raise Interrupted(f"the comparison was stopped after {trial.model}.")
        return {"rows": rows, "trivial": trivial, "failed": failed}

    def _row(self, trial: Trial, news: _TrialProgress, stopper: Stopper) -> dict[str, Any]:
        file = self.folder / "rows" / f"{_key(trial)}.json"
        if not file.exists():
            asked = news.progress.counting(f"{news.name}, testing")
            row = run_trial(self.place, trial, self.folder / "runs" / _key(trial), news, stopper, asked)
            write_whole(file, index_text(row))
        return read_index(file)

    def _trivial(self) -> dict[str, Any]:
        file = self.folder / "trivial.json"
        if not file.exists():
            settings = Trial("frequency").settings(self.place.graph, self.place.device)
            write_whole(file, index_text(trivial_rows(self.place, settings)))
        return read_index(file)

    def _refuse_another_graph(self) -> None:
        file, mine = self.folder / "graph.json", graph_fingerprints(self.place.graph)
        if not file.exists():
            write_whole(file, index_text(mine))
            return
        changed = graph_differences(read_index(file), mine)
        if changed:
            raise UsageError(
                f"{self.folder} holds a comparison on another graph: {'; '.join(changed)}.",
                where="--out",
                advice="Choose another folder.",
            )

    def _refuse_other_settings(self) -> None:
        """Before hours of training, not after them: rows made with other settings do not belong beside new ones."""
        for trial in self.trials:
            file = self.folder / "rows" / f"{_key(trial)}.json"
            if not file.exists():
                continue
            wanted = json.loads(json.dumps(to_mapping(trial.settings(self.place.graph, self.place.device))))
            changed = changes(read_index(file)["settings"], wanted)
            if changed:
                raise UsageError(
                    f"{self.folder} holds a row of {trial.model} with other settings: {'; '.join(changed)}.",
                    where="--out",
                    advice="Choose another folder, or give the options it was made with.",
                )


def _key(trial: Trial) -> str:
    return f"{trial.model}-{trial.seed}"
