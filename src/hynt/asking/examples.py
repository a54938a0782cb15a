"""Questions to begin with, by how well a run answers held-out ones like them: the same for the same run, always."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import torch

from hynt.asking.predictor import Predictor
from hynt.calibration.calibration import RANKED, Calibration, calibration_of
from hynt.calibration.held_out import SPLIT, HeldOut, held_out, read_numbers
from hynt.errors import DataError
from hynt.evaluation.metrics import TaskName
from hynt.files import index_text, read_index, write_whole
from hynt.graph.changes import fact_hashes
from hynt.graph.fact_table import HEAD, POSITION_GROUPS, RELATION, TAIL, FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Flags, Floats, Ids
from hynt.runs import WEIGHTS
from hynt.runs.opening import LoadedRun

EXAMPLES = "examples.json"
QUESTIONS = 1024
"""Held-out questions of a task that are looked at, spread over the split."""
FEWEST = 3
"""The least number of held-out questions for which a relation's quality is compared."""
MOST_QUALIFIERS = 3
MOST_ANSWERS = 5
"""Facts that answer a question alike, up to which it is worth showing: Asia is the continent of too many."""
NEARLY = 0.7
"""A relation whose facts carry qualifiers is preferred if it has at least this share of the best one's quality."""


class HeldOutExample(NamedTuple):
    """A fact of the validation split, and what is left out of it."""

    row: int
    position: int


def held_out_examples(predictor: Predictor) -> list[HeldOutExample]:
    """Questions to begin with, kept in the run as `examples.json` once they are found: that takes some seconds. An
    updated graph has those of the graph before that it still holds.
    """
    loaded = predictor.loaded
    if loaded.home is None:
        return _kept(predictor, loaded, predictor.calibration)
    found = _kept(predictor, loaded.home, calibration_of(loaded.home, predictor.device, predictor.note))
    before, now = loaded.home.graph, loaded.graph
    asked = fact_hashes(before.split(SPLIT).take(np.array([one.row for one in found], np.int64)), before.vocabulary)
    there = fact_hashes(now.split(SPLIT), now.vocabulary) if SPLIT in now.splits else asked[:0]
    rows = [np.flatnonzero((there == one).all(axis=1))[:1].tolist() for one in asked]
    return [one._replace(row=row[0]) for one, row in zip(found, rows, strict=True) if row]


def _kept(predictor: Predictor, loaded: LoadedRun, calibration: Calibration) -> list[HeldOutExample]:
    """Of the graph that the run was trained on."""
    run, path = predictor.saved, predictor.path / EXAMPLES
    weights = run.manifest["files"].get(WEIGHTS)
    if weights is None:
        return _found(loaded, calibration, predictor.device)
    with suppress(DataError):  # a file that is damaged, or not there, is made again
        kept = read_index(path)
        if kept.get("weights") == weights:
            facts = len(loaded.graph.split(SPLIT))
            rows = [HeldOutExample(int(row), int(position)) for row, position in kept["examples"]]
            return [one for one in rows if 0 <= one.row < facts and one.position in (HEAD, RELATION, TAIL)]
    found = _found(loaded, calibration, predictor.device)
    if not run.is_packaged:
        with suppress(DataError):  # where nothing can be written they are found anew each time
            write_whole(path, index_text({"weights": weights, "examples": [list(one) for one in found]}))
    return found


def _found(loaded: LoadedRun, calibration: Calibration, device: torch.device) -> list[HeldOutExample]:
    """A missing entity, number, head and relation, of the relations that are answered best among held-out facts, with
    qualifiers where those are answered nearly as well. Each is of a fact that was answered well itself, of the head
    that training knows most of; a head is asked for beside an entity. None without held-out facts.
    """
    if calibration.missing:
        return []
    table, found = loaded.graph.split(SPLIT), list[HeldOutExample]()
    wanted: list[tuple[TaskName, int]] = [("link", TAIL), ("number", TAIL), ("link", HEAD), ("relation", RELATION)]
    read = {task: held_out(loaded, SPLIT, task, device, QUESTIONS) for task in RANKED}
    heads = np.bincount(loaded.graph.split("train").head, minlength=loaded.graph.vocabulary.entity_count)
    for task, position in wanted:
        if task == "number":
            rows, quality, fine = _numbers(loaded, position, device)
        else:
            rows, quality, fine = _ranked(read[task].get(POSITION_GROUPS[position]))
        if position == HEAD:
            beside = ~loaded.graph.vocabulary.relation_is_number[table.relation[rows]]
            rows, quality, fine = rows[beside], quality[beside], fine[beside]
        if task == "link":
            telling = _answers(loaded.graph, table, rows, position) <= MOST_ANSWERS
            fine = fine & telling if (fine & telling).any() else fine
        row = _best(table, rows, quality, fine, heads, {int(table.head[one.row]) for one in found})
        if row is not None:
            found.append(HeldOutExample(row, position))
    return found


def _answers(graph: KnowledgeGraph, table: FactTable, rows: Ids, position: int) -> Ids:
    """(n,) how many facts of the graph answer the question for each row's head, or tail, whatever their qualifiers."""
    width = np.int64(graph.vocabulary.relation_count)

    def asked(facts: FactTable) -> Ids:
        given = facts.tail_entity if position == HEAD else facts.head
        number = graph.vocabulary.relation_is_number[facts.relation]
        return np.where(number, -1, given * width + facts.relation)

    known, counts = np.unique(np.concatenate([asked(one) for one in graph.splits.values()]), return_counts=True)
    found: Ids = counts[np.searchsorted(known, asked(table.take(rows)))]
    return found


def _ranked(group: HeldOut | None) -> tuple[Ids, Floats, Flags]:
    """(n,) rows of the validation split, (n,) 1 where the first answer was right, and (n,) whether it was."""
    if group is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.bool_)
    right = group.first_answers(1.0).correct
    return group.row, right.astype(np.float64), right


def _numbers(loaded: LoadedRun, position: int, device: torch.device) -> tuple[Ids, Floats, Flags]:
    """The same for numbers: from 0 to 1, how small errors are beside how widely numbers are spread."""
    found = read_numbers(loaded, SPLIT, device)
    if found is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.bool_)
    asked = found.asked
    quality = 1 / (1 + asked.ratio(loaded.scaling.scale(asked.relation, found.questions.truth)))
    here = asked.position == position
    return asked.row[here], quality[here], quality[here] >= np.median(quality[here]) if here.any() else here[here]


def _best(table: FactTable, rows: Ids, quality: Floats, fine: Flags, heads: Ids, taken: set[int]) -> int | None:
    """The row of the best known head among facts that were answered well, of the relation with the best quality; one
    with qualifiers comes first where its relation is nearly as good.
    """
    counts = table.qualifier_counts()[rows]
    fits = fine & (counts <= MOST_QUALIFIERS) & ~np.isin(table.head[rows], list(taken))
    if not fits.any():
        return None
    relation = table.relation[rows]
    size = np.maximum(np.bincount(relation), 1)
    mean = np.bincount(relation, quality) / size
    few = size[relation] < FEWEST
    best = mean[relation][fits & ~few].max(initial=0.0)
    told = (counts > 0) & (mean[relation] >= NEARLY * best)
    order = np.lexsort((rows, -heads[table.head[rows]], -mean[relation], ~told, few, ~fits))
    return int(rows[order[0]])
