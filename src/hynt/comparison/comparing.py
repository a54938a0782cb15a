"""Many models on one graph, one after the other, each within the same time: what `hynt compare` does.

    DIR/runs/MODEL-SEED/     the run of each model, to be asked or evaluated further
        rows/MODEL-SEED.json its row
        trivial.json         the rows of models that learn nothing

A row that is there is not made again, and a run that was stopped goes on: the same call finishes what another began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from hynt.comparison.trial import Trial, TrialPlace, run_trial, trivial_rows
from hynt.config import to_mapping
from hynt.errors import HyntError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.interruption import Stopper
from hynt.models.registry import MODELS
from hynt.runs.graph_identity import fingerprints, graph_differences
from hynt.runs.hashed_files import index_text, read_index, write_atomically
from hynt.runs.progress import Interrupted
from hynt.training.presets import PRESETS
from hynt.training.run import Watcher

FACTS_VALIDATED = 500


class ComparisonListener(Watcher, Protocol):
    """Who is told how a comparison goes."""

    def begins(self, trial: Trial, index: int, count: int) -> None:
        """A model's turn has come, counted from 1."""
        ...

    def asked(self, done: int, total: int) -> None:
        """So many questions of the test split are asked."""
        ...

    def ends(self, row: Mapping[str, Any]) -> None:
        """A model's row is there, new or from before."""
        ...


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
    preset, changes = None, []
    if device.type != "cuda" and model != "hynt" and f"{model}-small" in PRESETS:
        preset = f"{model}-small"
        epochs = PRESETS.get(f"{model}-paper")["schedule"]["epochs"]
        changes = [f"schedule.epochs={epochs}", f"schedule.period={_period(preset, epochs)}"]
    return Trial(model, preset, seed, seconds, validation_facts=sample, changes=tuple(changes), fills_time=True)


def _period(preset: str, epochs: int) -> int:
    """Of a cosine, all epochs; a rate that falls in steps keeps them."""
    schedule = PRESETS.get(preset)["schedule"]
    return epochs if schedule.get("shape", "cosine") == "cosine" else schedule.get("period", 50)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is compared, and where it is kept."""

    folder: Path
    place: TrialPlace
    trials: Sequence[Trial]

    def run(self, listener: ComparisonListener, stopper: Stopper) -> dict[str, Any]:
        """All rows. A model that fails is recorded and ends nothing else; an interruption does."""
        (self.folder / "rows").mkdir(parents=True, exist_ok=True)
        self._refuse_another_graph()
        self._refuse_other_settings()
        trivial = self._trivial()
        rows, failed = [], {}
        for index, trial in enumerate(self.trials, 1):
            listener.begins(trial, index, len(self.trials))
            try:
                row = self._row(trial, listener, stopper)
            except Interrupted:
                raise
            except (HyntError, RuntimeError, ValueError, MemoryError) as problem:
                failed[_key(trial)] = str(problem) or type(problem).__name__
                listener.note(f"{trial.model} failed: {failed[_key(trial)]}")
                continue
            rows.append(row)
            listener.ends(row)
            if stopper.asked:
                raise Interrupted(f"the comparison was stopped after {trial.model}.")
        return {"rows": rows, "trivial": trivial, "failed": failed}

    def _row(self, trial: Trial, listener: ComparisonListener, stopper: Stopper) -> dict[str, Any]:
        file = self.folder / "rows" / f"{_key(trial)}.json"
        if not file.exists():
            row = run_trial(self.place, trial, self.folder / "runs" / _key(trial), listener, stopper, listener.asked)
            write_atomically(file, index_text(row))
        return read_index(file)

    def _trivial(self) -> dict[str, Any]:
        file = self.folder / "trivial.json"
        if not file.exists():
            settings = Trial("frequency").settings(self.place.graph, self.place.device)
            write_atomically(file, index_text(trivial_rows(self.place, settings)))
        return read_index(file)

    def _refuse_another_graph(self) -> None:
        file, mine = self.folder / "graph.json", fingerprints(self.place.graph)
        if not file.exists():
            write_atomically(file, index_text(mine))
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
            changed = sorted(_changes(read_index(file)["settings"], wanted))
            if changed:
                raise UsageError(
                    f"{self.folder} holds a row of {trial.model} with other settings: {'; '.join(changed)}.",
                    where="--out",
                    advice="Choose another folder, or give the options it was made with.",
                )


def _changes(old: Any, new: Any, path: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() | new.keys():
            yield from _changes(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif old != new:
        yield f"{path}: {old} → {new}"


def _key(trial: Trial) -> str:
    return f"{trial.model}-{trial.seed}"
