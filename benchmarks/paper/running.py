"""What makes the rows of a table: commands of `benchmarks.reproduce`, one for each row, and the graphs' own figures."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.beyond import LITERAL_AWARE, LITERAL_GRAPHS, SHUFFLED
from benchmarks.paper.printed import BASELINES, PAPER
from benchmarks.paper.tables import SLUGS, STANDS_FOR, task_of
from benchmarks.result_file import (
    ResultFile,
    Row,
    graph_fingerprint,
    read_results,
    this_command,
    this_commit,
    this_device,
)

SWITCHES: dict[str, tuple[str, ...]] = {
    "without masking numbers, relations, qualifiers": (
        "masking.numbers=false",
        "masking.relations=false",
        "masking.qualifiers=false",
    ),
    "without masking relations, qualifiers": ("masking.relations=false", "masking.qualifiers=false"),
    "without masking numbers": ("masking.numbers=false",),
    "without masking relations": ("masking.relations=false",),
    "without masking qualifiers": ("masking.qualifiers=false",),
    "without prediction transformer": ("model.prediction=linear",),
    "with Hadamard encoding": ("model.encoding=hadamard",),
    "numbers as discrete entities": ("model.numbers=discrete",),
    "HyNT": (),
}
"""Rows of the ablations, each a switch of HyNT or of its masking."""
ABLATION_SCHEDULE = ("schedule.epochs=150", "schedule.period=50", "validation.every=150")
PRESETS = {
    "HN-YG": {"link": "hn-yg-link", "relation": "hn-yg-relation", "number": "hn-yg-number-long"},
    "HN-WK-resplit": {"link": "hn-wk-link", "relation": "hn-wk-relation", "number": "hn-wk-number"},
    "HN-FB-S": {"link": "hn-fb-s-link", "relation": "hn-fb-s-relation", "number": "hn-fb-s-number"},
    "HN-FB": {"link": "hn-fb-link", "relation": "hn-fb-relation", "number": "hn-fb-number"},
    "WD50K": {"link": "wd50k-link"},
    "WikiPeople-": {"link": "wikipeople-link"},
    "world": {"link": "world"},
}
"""Of HyNT, by task."""
INDUCTIVE = {
    "HN-YG": "hynt-inductive-hn-yg",
    "HN-WK-resplit": "hynt-inductive-hn-wk",
    "WD50K": "hynt-inductive-wd50k",
    "WikiPeople-": "hynt-inductive-wikipeople",
    "world": "hynt-inductive-small",
}


def commands(
    name: str, graphs: Path, raw: Path, wanted: Sequence[str] | None, options: Sequence[str]
) -> Iterator[list[str]]:
    """One for each row of a table; a row that is there is passed over by the command itself."""
    seen = set()
    for graph, row, task in rows_of(name):
        if wanted is not None and row not in wanted and row.removesuffix(SHUFFLED) not in wanted:
            continue
        command = [*command_of(graph, row, task, graphs, raw), *options]
        if tuple(command) not in seen:
            seen.add(tuple(command))
            yield command


def rows_of(name: str) -> Iterator[tuple[str, str, str]]:
    """Graph, row and tasks."""
    if name == "literals":
        yield from (
            (graph, f"{model}{end}", "link")
            for graph in LITERAL_GRAPHS
            for model in LITERAL_AWARE
            for end in ("", SHUFFLED)
        )
    elif name in ("calibration", "qualifiers", "leakage", "differences"):
        yield from (("HN-YG", model, "link,relation,number") for model in ("hynt", "hynt-inductive", *BASELINES))
    else:
        table = next(one for one in PAPER.values() if one.name == name)
        for section in table.sections if name != "graphs" else ():
            tasks = ",".join(dict.fromkeys(task_of(column) for column in section.columns))
            graph = STANDS_FOR.get(section.graph, section.graph)
            both = (graph, "HN-YG") if "HyNT" in section.rows else (graph,)
            yield from ((one, row, tasks) for one in both for row in section.rows)


def command_of(graph: str, row: str, tasks: str, graphs: Path, raw: Path) -> list[str]:
    """Of the whole schedule with the preset of the paper."""
    place, _, both = graph.partition(", ")
    changes = ["scale_on=all-splits"] if place.startswith("HN-") else []
    changes += ["train_on=train+valid"] if both else []
    model, title = row.removesuffix(SHUFFLED), f"{graph} {row}"
    changes += ["literals=shuffled"] if row.endswith(SHUFFLED) else []
    if model in SWITCHES:
        changes += [*ABLATION_SCHEDULE, *SWITCHES[model]]
        model = f"hynt:{PRESETS[place]['link']}"
    elif model == "hynt":
        preset = PRESETS[place].get(tasks, PRESETS[place]["link"])  # each task has its own, several share that of links
        title += f", {tasks}" if tasks in PRESETS[place] and len(PRESETS[place]) > 1 else ""
        model = f"hynt:{preset}"
    elif model == "hynt-inductive" and place in INDUCTIVE:
        model = f"hynt-inductive:{INDUCTIVE[place]}"
    elif place == "world":
        model = f"{model}:{model}-small"
    where = place if place == "world" else str(graphs / place)  # the embedded graph is nowhere else
    command = [sys.executable, "-m", "benchmarks.reproduce", "--graph", where, "--models", model]
    asked = "link" if place.startswith("W") else "link,relation,number"  # whatever the table: one row serves all
    command += ["--tasks", asked, "--seconds-per-model", "whole", "--as-published", "--evidence", "--title", title]
    command += [part for change in changes for part in ("--set", change)]
    return [*command, "--out", str(raw / f"paper-{SLUGS[graph]}.json")]


def measure_graphs(graphs: Path, raw: Path, is_dry: bool) -> list[str]:
    """Sizes and leakage of every saved graph that is there, and of the embedded one; their names."""
    from hynt.graph.storage import load_graph

    names = {name: str(graphs / name) for name in SLUGS if (graphs / name).is_dir()} | {"world": "world"}
    where = raw / "graphs.json"
    found = ResultFile("Sizes of the graphs as the paper counts them, and test facts that training has.")
    found = read_results(where) if where.exists() else found
    for name, place in {} if is_dry else names.items():
        graph = load_graph(place)
        measured = {"sizes": sizes(graph), "leakage": leaks(graph)}
        more: dict[str, Any] = {"graph": name, "fingerprint": graph_fingerprint(graph), "measured": measured}
        found = found.with_row(Row(name, [this_command()], this_device("cpu"), this_commit(), **more))
        found.write(where)
    return list(names)


def sizes(graph: Any) -> dict[str, int]:
    """What the paper's first table counts, over all splits; numeric entities are literals as they are written."""
    import pyarrow as pa

    from hynt.graph.fact_table import concatenate

    table, is_number = concatenate(list(graph.splits.values())), graph.vocabulary.relation_is_number
    of_tail, of_value = is_number[table.relation], is_number[table.qualifier_relation]
    literal = pa.concat_arrays([table.tail_literal, table.qualifier_literal])

    def distinct(*columns: Any) -> int:
        return len(np.unique(np.stack([np.asarray(one, dtype=np.int64) for one in columns]), axis=1).T)

    tail, value = (
        one.dictionary_encode().indices.fill_null(0).to_numpy() for one in (table.tail_literal, table.qualifier_literal)
    )
    head, relation, asked = table.head, table.relation, table.qualifier_relation
    return {
        "discrete entities": int(graph.vocabulary.entity_count),
        "numeric entities": len(literal.drop_null().unique()),
        "discrete relations": int((~is_number).sum()),
        "numeric relations": int(is_number.sum()),
        "facts": len(table),
        "facts with qualifiers": int((np.diff(table.offsets) > 0).sum()),
        "distinct triplets, discrete": distinct(head[~of_tail], relation[~of_tail], table.tail_entity[~of_tail]),
        "distinct triplets, numeric": distinct(head[of_tail], relation[of_tail], tail[of_tail]),
        "distinct qualifiers, discrete": distinct(asked[~of_value], table.qualifier_entity[~of_value]),
        "distinct qualifiers, numeric": distinct(asked[of_value], value[of_value]),
    }


def leaks(graph: Any) -> dict[str, int]:
    """Test facts whose triplet training has, and those that training has whole."""
    from hynt.graph.changes import fact_hashes, same_facts, seen_triplets

    test, train, vocabulary = graph.split("test"), graph.split("train"), graph.vocabulary
    whole = same_facts(fact_hashes(test, vocabulary), fact_hashes(train, vocabulary))
    return {"test": len(test), "triplet": int(seen_triplets(test, train, vocabulary).sum()), "fact": int(whole.sum())}
