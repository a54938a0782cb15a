"""Questions to begin with, by how well a run answers held-out ones like them: the same for the same run, always."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from hynt.asking.predictor import Predictor
from hynt.calibration.calibration import RANKED, SPLIT, HeldOut, held_out, read_numbers
from hynt.errors import DataError
from hynt.evaluation.metrics import TaskName
from hynt.files import index_text, read_index, write_whole
from hynt.graph.fact_table import HEAD, POSITION_GROUPS, RELATION, TAIL, FactTable
from hynt.graph.vocabulary import Flags, Floats, Ids
from hynt.runs.checkpoint import WEIGHTS

EXAMPLES = "examples.json"
QUESTIONS = 1024
"""Held-out questions of a task that are looked at, spread over the split."""
FEWEST = 3
"""Held-out questions from which on a relation's quality is compared."""
MOST_QUALIFIERS = 3


class HeldOutExample(NamedTuple):
    """A fact of the validation split, and what is left out of it."""

    row: int
    position: int


def held_out_examples(predictor: Predictor) -> list[HeldOutExample]:
    """Questions to begin with, kept in the run as `examples.json` once they are found: that takes some seconds."""
    run, loaded = predictor.saved, predictor.loaded
    weights, path = run.manifest["files"].get(WEIGHTS), predictor.path / EXAMPLES
    if weights is None or loaded.home is not None:
        return _found(predictor)
    with suppress(DataError):  # a file that is damaged, or not there, is made again
        kept = read_index(path)
        if kept.get("weights") == weights:
            facts = len(loaded.graph.split(SPLIT))
            rows = [HeldOutExample(int(row), int(position)) for row, position in kept["examples"]]
            return [one for one in rows if 0 <= one.row < facts and one.position in (HEAD, RELATION, TAIL)]
    found = _found(predictor)
    if not run.is_packaged:
        with suppress(DataError):  # where nothing can be written they are found anew each time
            write_whole(path, index_text({"weights": weights, "examples": [list(one) for one in found]}))
    return found


def _found(predictor: Predictor) -> list[HeldOutExample]:
    """A missing entity, number, head and relation, of the relations that are answered best among held-out facts. Each
    is of a fact that was answered well itself, of the head that training knows most of. None without held-out facts.
    """
    loaded = predictor.loaded
    if predictor.calibration.missing:
        return []
    table, found = loaded.graph.split(SPLIT), list[HeldOutExample]()
    wanted: list[tuple[TaskName, int]] = [("link", TAIL), ("number", TAIL), ("link", HEAD), ("relation", RELATION)]
    read = {task: held_out(loaded, SPLIT, task, predictor.device, QUESTIONS) for task in RANKED}
    heads = np.bincount(loaded.graph.split("train").head, minlength=loaded.graph.vocabulary.entity_count)
    for task, position in wanted:
        if task == "number":
            rows, quality, fine = _numbers(predictor, position)
        else:
            rows, quality, fine = _ranked(read[task].get(POSITION_GROUPS[position]))
        row = _best(table, rows, quality, fine, heads, {int(table.head[one.row]) for one in found})
        if row is not None:
            found.append(HeldOutExample(row, position))
    return found


def _ranked(group: HeldOut | None) -> tuple[Ids, Floats, Flags]:
    """(n,) rows of the validation split, (n,) 1 where the first answer was right, and (n,) whether it was."""
    if group is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.bool_)
    right = group.first_answers(1.0).correct
    return group.row, right.astype(np.float64), right


def _numbers(predictor: Predictor, position: int) -> tuple[Ids, Floats, Flags]:
    """The same for numbers: how small errors are beside how widely numbers are spread."""
    found = read_numbers(predictor.loaded, SPLIT, predictor.device)
    if found is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.bool_)
    asked = found.asked
    quality = -asked.ratio(predictor.loaded.scaling.scale(asked.relation, found.questions.truth))
    here = asked.position == position
    return asked.row[here], quality[here], quality[here] >= np.median(quality[here]) if here.any() else here[here]


def _best(table: FactTable, rows: Ids, quality: Floats, fine: Flags, heads: Ids, taken: set[int]) -> int | None:
    """The row of the best known head among facts that were answered well, of the relation with the best quality."""
    counts = table.qualifier_counts()[rows]
    fits = fine & (counts <= MOST_QUALIFIERS) & ~np.isin(table.head[rows], list(taken))
    if not fits.any():
        return None
    relation = table.relation[rows]
    size = np.maximum(np.bincount(relation), 1)
    mean = np.bincount(relation, quality) / size
    few = size[relation] < FEWEST
    order = np.lexsort((rows, -heads[table.head[rows]], -mean[relation], few, ~fits))
    return int(rows[order[0]])
