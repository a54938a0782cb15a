"""What an audit will do: which facts are judged, what each judge learns from, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.auditing.folds import Folds, deal, fold_parts
from hynt.batches.number_scaling import NumberScaling
from hynt.config import to_mapping, with_overrides
from hynt.errors import UsageError
from hynt.graph.changes import fact_hashes, same_facts
from hynt.graph.content_hash import graph_fingerprints
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.log_scales import suited_to_logarithms
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Flags, Floats, Ids, Vocabulary
from hynt.models.contract import Part
from hynt.models.registry import MODELS
from hynt.names import advice_on, plural
from hynt.runs.model_choice import ENSEMBLE
from hynt.runs.place import name_in_commands
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import training_splits
from hynt.training.resolve_settings import SettingsRequest, resolve_settings, resumed_settings

# Numbers as models of an audit learn them: those far outside the bulk of their relation are pulled in to its edge.
#
# A model sees numbers on a scale from the least to the greatest. One year written as 20250 would squeeze all others
# into a tenth of it, and the very errors that an audit looks for would blind it. What is judged stays as it is stored.

REACH = 3.0
"""How many widths of its bulk a number may lie outside it."""

EACH_SIDE = 0.01
"""The share on each side that is not of the bulk; more in small relations, so that a single number never is."""

ENOUGH = 10
"""The least number of numbers that make a bulk."""


def clip_outliers(table: FactTable, vocabulary: Vocabulary, log_relations: Sequence[str]) -> tuple[FactTable, int]:
    """The same facts with their numbers inside the edges, and how many were moved. Logarithms count where a relation
    has a log scale.
    """
    is_number = vocabulary.relation_is_number
    low, high = edges(table, vocabulary, log_relations)
    tail = np.clip(table.tail_number, low[table.relation], high[table.relation])
    value = np.clip(table.qualifier_number, low[table.qualifier_relation], high[table.qualifier_relation])
    tail = np.where(is_number[table.relation], tail, table.tail_number)
    value = np.where(is_number[table.qualifier_relation], value, table.qualifier_number)
    moved = int((tail != table.tail_number).sum() + (value != table.qualifier_number).sum())
    return replace(table, tail_number=tail, qualifier_number=value), moved


def edges(table: FactTable, vocabulary: Vocabulary, log_relations: Sequence[str]) -> tuple[Floats, Floats]:
    """(relations,) the least and the greatest number that each relation is learned with; infinite without a bulk."""
    low, high = np.full(vocabulary.relation_count, -np.inf), np.full(vocabulary.relation_count, np.inf)
    numbers = sorted_numbers(table, vocabulary.relation_is_number)
    logs = {vocabulary.relation_ids[name] for name in log_relations}
    for relation, start, size in zip(
        numbers.present.tolist(), numbers.start.tolist(), numbers.size.tolist(), strict=True
    ):
        if size < ENOUGH:
            continue
        value = numbers.value[start : start + size]
        if relation in logs:
            value = np.log(value)
        share = max(EACH_SIDE, 1.5 / (size - 1))
        first, last = np.quantile(value, [share, 1 - share])
        width = last - first
        ends = np.array([first - REACH * width, last + REACH * width])
        low[relation], high[relation] = np.exp(ends) if relation in logs else ends
    return low, high


ALL, ADDED = "all", "added"

ENOUGH_TO_COMPARE = 2_000
"""The least number of facts judged where that takes no training: what is suspicious shows beside what is usual."""


@dataclass(frozen=True, eq=False)
class AuditPart:
    """Some facts and who judges them: the model of their fold, or the run that was given."""

    name: str  # fold-1, run-1, …
    fold: int
    by_run: bool
    facts: Ids  # their numbers in the whole graph


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """All that decides the outcome of an audit."""

    graph: KnowledgeGraph
    table: FactTable  # (n,) the facts of all splits, in order
    learned: FactTable  # (n,) the same as models learn them, with numbers that are far off pulled in
    clipped: int  # how many numbers that are
    split: NDArray[np.int64]  # (n,) the number of each fact's split
    in_training: Flags  # (n,) what the folds' models learn from, but for their own fold
    wanted: Flags  # (n,) what to report
    folds: Folds  # of what is judged
    settings: RunSettings  # of the folds' models
    run: RunFolder | None  # where one was given: it judges the facts it has not learned from
    by_states: bool  # the run reads observed facts: it judges every fact itself, from the facts of other folds
    is_updated: bool  # the run's graph is no longer the one it was trained on
    described: Mapping[str, Any]  # for people and for recognising the audit again

    def parts(self) -> list[AuditPart]:
        """The folds that judge something, then what the run judges: in as many parts, to calibrate one another."""
        found = []
        for by_run in (False, True):
            for fold in range(self.folds.count):
                own = np.logical_or(self.by_states, ~self.folds.needs_fold) == by_run
                rows = self.folds.is_judged & (self.folds.fold == fold) & own
                if rows.any():
                    name = f"{'run' if by_run else 'fold'}-{fold + 1}"
                    found.append(AuditPart(name, fold, by_run, np.flatnonzero(rows).astype(np.int64)))
        return found

    def judges(self) -> str:
        """What is judged, and by whom, in words."""
        if self.run is None:
            name = f"The graph {self.graph.name}" if self.graph.name else "The graph"
            return f"{name}, judged by {self.folds.count} models of {self.settings.model_name} trained for it."
        graph, parts = f"The graph of {name_in_commands(self.run.path)}", self.parts()
        folds = sum(not part.by_run for part in parts)
        if self.by_states:
            return f"{graph}, judged by the run itself, each fact from the others."
        if not folds:
            return f"{graph}, judged by the run itself, which did not train on these facts."
        trained = f"{graph}, judged by {plural(folds, 'model')} trained with its settings"
        return f"{trained}, and by the run itself where it did not train." if len(parts) > folds else f"{trained}."

    def observed(self, fold: int) -> FactTable:
        """What the judge of a fold knows: its model learns it, or a run that reads observed facts is given it."""
        rows = np.flatnonzero(self.folds.training(self.in_training, fold)).astype(np.int64)
        return self.learned.take(rows)

    def counted(self, fold: int) -> FactTable:
        """What the statistics of a run that judges may count: of what the judge knows, the run's training facts."""
        names = [] if self.run is None else training_splits(self.run.settings())
        trained = np.isin(self.split, [place for place, name in enumerate(self.graph.splits) if name in names])
        rows = np.flatnonzero(self.folds.training(self.in_training & trained, fold)).astype(np.int64)
        return self.learned.take(rows)

    def fold_graph(self, fold: int) -> KnowledgeGraph:
        """What the model of a fold learns from, as a graph of its own."""
        return KnowledgeGraph(self.graph.vocabulary, {"train": self.observed(fold)}, self.graph.entities)

    def identity(self) -> dict[str, Any]:
        """What must agree for an audit to go on where another stopped."""
        weights = None if self.run is None else dict(self.run.manifest["files"])
        return {**self.described, "settings": to_mapping(self.settings), "run": weights}


def plan_audit(
    graph: KnowledgeGraph,
    run: RunFolder | None = None,
    *,
    trained_on: KnowledgeGraph | None = None,
    splits: Sequence[str] = (ALL,),
    folds: int = 5,
    fold_by: str = "fact",
    request: SettingsRequest | None = None,
    on_gpu: bool = False,
) -> AuditPlan:
    """Plans the audit of a graph, or of the graph of a run, which had the facts of `trained_on` if updates came since.
    All that can be refused is refused here.
    """
    chosen, request = _checked_splits(graph, splits, trained_on), request or SettingsRequest()
    together = fold_parts(fold_by)
    table = graph.columns()
    if not len(table):
        raise UsageError("the graph has no facts.", advice="Import a graph that has some.")
    names = list(graph.splits)
    split = np.repeat(np.arange(len(names)), [len(one) for one in graph.splits.values()])
    if run is not None and run.settings().model_name == ENSEMBLE:
        what = "an ensemble has no single model to train again without the facts that are judged."
        raise UsageError(what, where=str(run.path), advice="Audit one of the runs it was made of.")
    settings = _settings(graph, table, run, request, on_gpu)
    own = run is not None and request == SettingsRequest(model=run.settings().model_name)
    by_states = own and Part.OBSERVED_FACTS in MODELS.get(settings.model_name).reads
    taught = training_splits(run.settings()) if run is not None and not by_states else tuple(names)
    in_training = np.isin(split, [names.index(name) for name in taught if name in names])
    wanted = np.isin(split, [names.index(name) for name in chosen if name != ADDED])
    if trained_on is not None and ADDED in chosen:
        before = fact_hashes(trained_on.columns(), trained_on.vocabulary)
        wanted |= ~same_facts(fact_hashes(table, graph.vocabulary), before)
    if not wanted.any():
        raise UsageError(f"there are no facts to judge in {', '.join(chosen)}.", advice="Name other splits, or all.")
    judged = _with_others(wanted, settings.seed) if by_states else wanted
    dealt = deal(table, graph.vocabulary, in_training, judged, folds, together, settings.seed)
    if not (dealt.is_judged & wanted).any():
        raise UsageError(
            "no fact can be judged: each holds something that occurs nowhere else.",
            advice="Audit more of the graph, or keep fewer facts together.",
        )
    described = {
        "graph": graph.name,
        "fingerprints": _fingerprints(graph, run if trained_on is None else None),
        "splits": list(chosen),
        "folds": folds,
        "fold_by": fold_by,
        "seed": settings.seed,
    }
    learned, moved = clip_outliers(table, graph.vocabulary, settings.log_relations)
    given = (graph, table, learned, moved, split, in_training, wanted, dealt, settings, run, by_states)
    return AuditPlan(*given, trained_on is not None, described)


def _with_others(wanted: Flags, seed: int) -> Flags:
    """(n,) the wanted facts, and some of the rest where these are few."""
    rest = np.random.default_rng(seed).permutation(np.flatnonzero(~wanted))
    found = wanted.copy()
    found[rest[: max(0, ENOUGH_TO_COMPARE - int(wanted.sum()))]] = True
    return found


def _fingerprints(graph: KnowledgeGraph, run: RunFolder | None) -> Mapping[str, str]:
    """Those that the run has told already, if it is its graph."""
    told: Mapping[str, str] | None = None if run is None else run.manifest["graph"]["fingerprints"]
    return graph_fingerprints(graph) if told is None else told


def _checked_splits(graph: KnowledgeGraph, splits: Sequence[str], trained_on: KnowledgeGraph | None) -> tuple[str, ...]:
    """The splits to judge, in the graph's order; `all` means all of them, `added` what updates of the graph brought."""
    known = [*graph.splits, ADDED]
    for name in splits:
        if name != ALL and name not in known:
            raise UsageError(
                f"this graph has no split {name!r}.", where="--split", advice=advice_on(name, [*known, ALL])
            )
    if not splits:
        raise UsageError("no split was given.", where="--split", advice=f"Choose from {', '.join(known)}, or say all.")
    if ADDED in splits and trained_on is None:
        what = "no facts were added: the graph is as the run was trained on it, or is no run's."
        raise UsageError(what, where="--split", advice="Add facts with hynt update, or judge other splits.")
    return tuple(name for name in known if name in splits or (ALL in splits and name != ADDED))


def _settings(
    graph: KnowledgeGraph, table: FactTable, run: RunFolder | None, request: SettingsRequest, on_gpu: bool
) -> RunSettings:
    """Of the folds' models: like those of the run, or of a new one. They have no validation split."""
    if run is None:
        settings = resolve_settings(request, graph, on_gpu=on_gpu)
    else:
        settings = resumed_settings(request, run.settings(), graph, on_gpu=on_gpu)
    if run is not None and settings.validation.patience is not None:  # it ended by validation, which folds have none of
        reached = run.manifest.get("training", {}).get("weights_of_epoch", settings.schedule.epochs)
        settings = replace(settings, schedule=replace(settings.schedule, epochs=max(1, reached)))
    schedule = settings.schedule
    if schedule.shape == "cosine" and schedule.epochs not in schedule.cycle_ends():
        # The last weights are the ones that judge: a schedule must not be cut where the rate is still high.
        settings = with_overrides(settings, [f"schedule.period={schedule.epochs}"])
    if run is None and not request.says("log_relations"):
        settings = replace(settings, log_relations=suited_to_logarithms(graph.vocabulary, table))
    NumberScaling.fit([table], graph.vocabulary, settings.log_relations)  # refuses a log scale that a value cannot take
    return replace(settings, train_on="train", validation=replace(settings.validation, patience=None))
