"""A served run for browser tests: a real `hynt serve` with kept figures and an audit, on a graph of hostile names."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hynt.auditing.auditing import SCHEMA
from hynt.front.run import load
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.reporting.report.page import make_report


def prepared_run(trained: Path, folder: Path) -> Path:
    """A copy of a run, measured once, so that the page about it has figures to show."""
    run = Path(shutil.copytree(trained, folder / "run"))
    make_report(load(run, "cpu"))
    return run


def write_audit(run: Path, out: Path) -> Path:
    """A file as `hynt audit` writes it, about facts of the run's own graph."""
    return audit_rows(load(run, "cpu").graph, out)


def audit_rows(graph: KnowledgeGraph, out: Path, count: int = 60) -> Path:
    """The same about facts of a graph."""
    words = Sentences(graph)
    rows = []
    for index, fact in enumerate(graph.split("train").take(np.arange(count)).facts(graph.vocabulary)):
        is_number = not isinstance(fact.tail, str)
        common = {
            "rank": index + 1,
            "score": 10.0 - index / 10,
            "split": "train",
            "row": index,
            "fact": words.fact(fact),
            "head": fact.head,
            "relation": fact.relation,
            "tail": fact.tail.literal if is_number else fact.tail,
            "component": "tail",
            "judge": "fold-1",
            "stored": words.value(fact.tail),
            "component_score": 3.0,
        }
        if is_number:
            rows.append({**common, "kind": "number", "said": "1.7 m", "said_value": 1.7, "residual": 2.5})
        else:
            rows.append(
                {
                    **common,
                    "kind": "entity",
                    "stored_id": fact.tail,
                    "probability": 0.001,
                    "said": "Zürich",
                    "said_id": "t3",
                    "said_probability": 0.75,
                }
            )
    rows.append({"split": "train", "row": count, "fact": "nobody", "reason": "occurs nowhere else"})
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), out)
    return out
