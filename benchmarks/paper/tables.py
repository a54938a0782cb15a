"""The tables of the paper with ours beside theirs, from raw files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.paper.grids import NO_ANSWER, NOT_RUN, Grid, Section, difference, figure, number
from benchmarks.paper.printed import BASELINES, PAPER
from benchmarks.result_file import RAW, Figure, ResultFile, Row, read_results

STANDS_FOR = {"HN-WK": "HN-WK-resplit"}
"""Graphs of the paper whose training split cannot be had, and what was run instead."""
SLUGS = {
    "HN-YG": "hn-yg",
    "HN-WK-resplit": "hn-wk-resplit",
    "WD50K": "wd50k",
    "WD50K, train and valid": "wd50k-train-and-valid",
    "WikiPeople-": "wikipeople",
    "HN-FB-S": "hn-fb-s",
    "HN-FB": "hn-fb",
    "world": "world",
}
HYNT = {
    ("HN-YG", "link"): ("hn-yg-link", "link"),
    ("HN-YG", "relation"): ("hn-yg-number-and-relation", "relation"),
    ("HN-YG", "number"): ("hn-yg-number-long", "number"),
    ("HN-WK-resplit", "link"): ("hn-wk-resplit-link", "link"),
    ("HN-WK-resplit", "relation"): ("hn-wk-resplit-link", "link"),
    ("HN-WK-resplit", "number"): ("hn-wk-resplit-number", "number"),
    ("WD50K", "link"): ("wd50k-link", "link"),
    ("WD50K, train and valid", "link"): ("wd50k-link-train-and-valid", "link"),
    ("WikiPeople-", "link"): ("wikipeople-link", "link"),
}
"""File and row of HyNT on a graph for a task: each task has a preset of its own."""
BESIDE = ("hynt-inductive", "frequency", "neighbour-mean", "relation-mean")
"""Rows that the paper has not: the new model, and trivial ones."""
ROW_TABLES = ("links", "links-all", "relations", "numbers", "benchmarks")
ROW_GRAPHS = ("HN-YG", "WD50K", "WikiPeople-", "HN-WK-resplit")
CLOSE = 0.010
TITLES = {"mrr": "MRR", "rmse": "RMSE", "hits@1": "H@1", "hits@3": "H@3", "hits@10": "H@10"}
ATTRIBUTE_NAMES = {"P1352": "ranking", "P1081": "HDI", "P4841": "fertility rate", "P585": "point in time"}
ATTRIBUTE_DIGITS = {"P1352": 1, "P1081": 3, "P4841": 3, "P585": 1}


@dataclass(frozen=True)
class RawFiles:
    """A folder of raw files, each read once."""

    folder: Path = RAW
    read: dict[str, ResultFile | None] = field(default_factory=dict)

    def file(self, name: str) -> ResultFile | None:
        if name not in self.read:
            path = self.folder / f"{name}.json"
            self.read[name] = read_results(path) if path.exists() else None
        return self.read[name]

    @cached_property
    def everything(self) -> dict[str, ResultFile]:
        names = sorted(path.stem for path in self.folder.glob("*.json"))
        return {name: found for name in names if (found := self.file(name)) is not None}

    def row(self, graph: str, name: str, task: str) -> Row | None:
        """What was run of a row of the paper; what `--run` made comes first."""
        slug = SLUGS[graph]
        places = [(f"paper-{slug}", f"{graph} {name}"), (f"paper-{slug}", f"{graph} {name}, {task}")]
        places += [(f"ablations-{slug}", name), (f"baselines-{slug}", f"{graph} {name}")]
        if name == "hynt" and (graph, task) in HYNT:
            places.append(HYNT[graph, task])
        for file, row in places:
            found = self.file(file)
            one = None if found is None else found.row(row)
            if one is not None and any(task in run.metrics.get(one.split or "test", {}) for run in one.runs):
                return one
        return self._inductive(graph, task) if name == "hynt-inductive" else None

    def _inductive(self, graph: str, task: str) -> Row | None:
        """Its first row of a graph that is asked on test and trained as the table says."""
        file = self.file(f"hynt-inductive-{SLUGS[graph.partition(',')[0]]}")
        both = "train+valid" if "train and valid" in graph else "train"
        for row in file.rows if file is not None else ():
            is_meant = row.model == "hynt-inductive" and row.split == "test" and row.settings.get("train_on") == both
            if is_meant and any(task in run.metrics["test"] for run in row.runs):
                return row
        return None


def of_column(row: Row, column: str) -> Figure | None:
    """A figure of a row: `link.triplet.mrr`, or the RMSE of an attribute in its own unit."""
    if column not in ATTRIBUTE_NAMES:
        return row.figure(*column.split("."))
    if column == "P585" and row.answers and not any(one.startswith("number, qualifier") for one in row.answers):
        return None  # the paper shows it in qualifiers
    found = [
        errors["rmse"]
        for run in row.runs
        for name, errors in run.per_relation.items()
        if name == column or name.endswith(f"({column})") or name.startswith(f"{column} ")
    ]
    return Figure.of(found) if found else None


def task_of(column: str) -> str:
    return "number" if column in ATTRIBUTE_NAMES else column.split(".")[0]


def paper_grids(number_of: int, raw: RawFiles) -> list[Grid]:
    """All parts of a table of the paper."""
    table = PAPER[number_of]
    if table.name == "graphs":
        return [graph_grid(table.sections[0], raw)]
    sections = list(table.sections)
    if "HyNT" in sections[0].rows:  # switches of HyNT, which were tried on a second graph too
        sections.append(sections[0].without_figures("HN-YG"))
    return [section_grid(section, raw) for section in sections]


def section_grid(section: Section, raw: RawFiles) -> Grid:
    """One graph: ours, with the paper's in brackets, and how far apart the first figures are."""
    graph = STANDS_FOR.get(section.graph, section.graph)
    is_another = graph != section.graph
    has_gaps = not is_another and any(printed[0] != "-" for printed in section.rows.values())
    titles = [_title(column, section) for column in section.columns]
    rows, records = [], []
    beside = () if "HyNT" in section.rows else BESIDE
    for name, printed in [*section.rows.items(), *((one, ["-"] * len(titles)) for one in beside)]:
        found = [raw.row(graph, name, task_of(column)) for column in section.columns]
        figures = [
            None if row is None else of_column(row, one) for row, one in zip(found, section.columns, strict=True)
        ]
        if name in beside and figures[0] is None:
            continue
        first = next((row for row in found if row is not None), None)
        cells = []
        for column, theirs, row, ours in zip(section.columns, printed, found, figures, strict=True):
            digits = ATTRIBUTE_DIGITS.get(column, 4)
            mine = NOT_RUN if row is None and name not in beside else figure(ours, digits)
            cells.append(mine if theirs == "-" else f"{mine} ({theirs})")
            value = None if theirs == "-" else float(theirs)
            gap = None if ours is None or value is None or is_another else ours.mean - value
            record: dict[str, Any] = {
                "graph": graph,
                "paper_graph": section.graph,
                "row": name,
                "column": column,
                "paper": value,
            }
            record |= {"ours": None if ours is None else ours.mean, "difference": gap}
            record |= {"deviation": ours.deviation if ours else None, "seeds": ours.seeds if ours else 0}
            record |= {"commands": row.commands if row else [], "commit": row.commit if row else None}
            records.append(record | {"cut_short": bool(row and row.is_cut_short)})
        ours, theirs = figures[0], printed[0]
        apart = NO_ANSWER if ours is None or theirs == "-" else difference(ours.mean, float(theirs))
        seeds = NO_ANSWER if ours is None else str(ours.seeds)
        rows.append([_name(name, first), cells[0], *([apart] if has_gaps else []), *cells[1:], seeds])
    columns = ["", titles[0], *(["difference"] if has_gaps else []), *titles[1:], "seeds"]
    scopes = {_scope(column) for column in section.columns}
    scope = f", {scopes.pop()}" if len(scopes) == 1 and "" not in scopes else ""
    words = f"The paper's figures are of {section.graph}, another split." if is_another else ""
    return Grid(f"{graph}{scope}", columns, rows, words, records)


def _name(name: str, row: Row | None) -> str:
    marks = "\\*" if row is not None and row.is_cut_short else ""
    marks += "†" if row is not None and any("test_facts" in run.cost for run in row.runs) else ""
    return f"{name} {marks}".strip()


def _scope(column: str) -> str:
    return {"triplet": "triplets", "all": "all"}.get(column.split(".")[1], "") if "." in column else ""


def _title(column: str, section: Section) -> str:
    if column in ATTRIBUTE_NAMES:
        return ATTRIBUTE_NAMES[column]
    task, scope, metric = column.split(".")
    tasks, scopes = ({one.split(".")[at] for one in section.columns} for at in (0, 1))
    words = ([task] if len(tasks) > 1 else []) + [TITLES[metric]] + ([scope] if len(scopes) > 1 else [])
    return " ".join(words)


def graph_grid(section: Section, raw: RawFiles) -> Grid:
    """The graphs' sizes."""
    file = raw.file("graphs")
    rows, records = [], []
    for name, printed in section.rows.items():
        cells = []
        for graph, theirs in zip(section.columns, printed, strict=True):
            mine = STANDS_FOR.get(graph, graph)
            row = None if file is None else file.row(mine)
            ours = None if row is None else row.measured["sizes"][name]
            told = NOT_RUN if ours is None else number(ours, 0)
            cells.append(f"{told} ({int(theirs):,})")
            records.append({"graph": mine, "paper_graph": graph, "row": name, "paper": int(theirs), "ours": ours})
        rows.append([name, *cells])
    words = "HN-WK-resplit is split anew from the released parts of HN-WK, so it is smaller."
    return Grid("Sizes", ["", *(STANDS_FOR.get(one, one) for one in section.columns)], rows, words, records)


def cost_grid(graph: str, raw: RawFiles) -> Grid:
    """How long the rows of a graph were trained, and what differs from the preset."""
    rows, records = [], list[dict[str, Any]]()
    for name, row in _rows_of(graph, raw):
        run = row.runs[0]
        planned = run.cost.get("planned_epochs")
        epochs = f"{run.cost.get('epochs', '–')}" + (f" of {planned}" if planned else "")
        changes = ", ".join(f"`{change}`" for change in row.changes) or NO_ANSWER
        if "searched" in row.measured:
            changes += f"; best of {len(row.measured['searched'])} on validation"
        facts = f"{run.cost['test_facts']:,}" if "test_facts" in run.cost else "all"
        seconds = number(run.seconds["train"], 0) if "train" in run.seconds else NO_ANSWER
        rows.append([_name(name, row), epochs, seconds, facts, changes, f"`{row.commit}`" if row.commit else NO_ANSWER])
        records.append({"row": name, "graph": graph, "ours": run.seconds.get("train"), "changes": row.changes})
    return Grid(f"{graph}, cost", ["", "epochs", "train s", "test facts", "changed", "commit"], rows, "", records)


def _rows_of(graph: str, raw: RawFiles) -> Iterator[tuple[str, Row]]:
    for name in (*BASELINES, "hynt"):
        row = raw.row(graph, name, "link")
        if row is not None:
            yield name, row


def row_grid(graph: str, raw: RawFiles) -> Grid:
    """The first figure of each kind that the paper prints of a graph, and how rows that fall short were trained."""
    printed = _first_figures(graph)
    is_another = graph in STANDS_FOR.values()
    rows, records = [], []
    for name in dict.fromkeys(name for theirs in printed.values() for name in theirs):
        found = {column: raw.row(graph, name, task_of(column)) for column in printed}
        cells, short = [], False
        for column, row in found.items():
            ours, theirs = None if row is None else of_column(row, column), printed[column].get(name, "-")
            value = None if theirs == "-" or is_another else float(theirs)
            is_near = ours is not None and value is not None and _is_near(column, ours.mean - value)
            text = f"**{figure(ours, spread=False)}**" if is_near else figure(ours, spread=False)
            cells.append(text if theirs == "-" else f"{text} ({theirs})")
            short |= value is not None and not is_near
            record: dict[str, Any] = {"graph": graph, "row": name, "column": column, "paper": value}
            records.append(record | {"ours": None if ours is None else ours.mean, "is_near": is_near})
        first = next((row for row in found.values() if row is not None), None)
        told = "" if first is None or not (short or first.is_cut_short) else schedule_of(first)
        rows.append([name, *cells, told])
    rows += [["hynt-inductive", *_beside(graph, list(printed), raw, ["hynt-inductive"]), ""]]
    rows += [["best trivial", *_beside(graph, list(printed), raw, BESIDE[1:]), ""]]
    tasks = {"link": "link MRR", "relation": "relation MRR", "number": "RMSE"}
    titles = [f"{tasks[task_of(column)]}, {_scope(column)}" for column in printed]
    words = "The paper's figures are of HN-WK, another split." if is_another else ""
    return Grid(graph, ["", *titles, "training"], rows, words, records)


def _first_figures(graph: str) -> dict[str, dict[str, str]]:
    """By column and row: the MRR of each kind of question, and both errors of numbers."""
    found: dict[str, dict[str, str]] = {}
    for table in PAPER.values():
        for section in table.sections if table.name in ROW_TABLES else ():
            if STANDS_FOR.get(section.graph, section.graph) == graph:
                for at, column in enumerate(section.columns):
                    if at == 0 or column.endswith("rmse"):
                        found[column] = {name: figures[at] for name, figures in section.rows.items()}
    return found


def _beside(graph: str, columns: list[str], raw: RawFiles, names: Sequence[str]) -> list[str]:
    """The best of these rows in each column."""
    cells = []
    for column in columns:
        rows = [raw.row(graph, name, task_of(column)) for name in names]
        found = [ours for row in rows if row is not None and (ours := of_column(row, column)) is not None]
        best: Callable[..., Figure] = min if column.endswith("rmse") else max
        cells.append(figure(best(found, key=lambda one: one.mean), spread=False) if found else NO_ANSWER)
    return cells


def schedule_of(row: Row) -> str:
    """How far the authors' schedule was run, what was searched, and how validation went."""
    run = row.runs[0]
    parts = [f"{len(row.measured['searched'])} settings tried"] if "searched" in row.measured else []
    if planned := run.cost.get("planned_epochs"):
        last, best = run.cost["epochs"], run.cost["best"]["epoch"]
        by_patience = ", ended by its patience" if last < planned and not row.is_cut_short else ""
        parts.insert(0, f"{last:,} of {planned:,} epochs{by_patience}")
        peak, end = run.cost["best"]["value"], run.curve[-1][2]
        parts.append("best at the end" if best == last else f"best at {best} ({number(peak, 3)}; end {number(end, 3)})")
    parts += [f"asked of {run.cost['test_facts']:,} test facts"] if "test_facts" in run.cost else []
    return "; ".join(parts)


def not_run(raw: RawFiles) -> list[str]:
    """Rows that the paper prints and nothing of ours stands for: the graph, its tables, and the rows' names."""
    tables: dict[tuple[str, str], list[str]] = {}
    for number_of in PAPER:
        has: dict[tuple[str, str], bool] = {}
        for one in (record for grid in paper_grids(number_of, raw) for record in grid.records if "column" in record):
            if one["paper"] is not None:
                key = (one["paper_graph"], one["row"])
                has[key] = has.get(key, False) or one["ours"] is not None
        for graph in dict.fromkeys(graph for graph, _ in has):
            lacking = [name for (of, name), is_there in has.items() if of == graph and not is_there]
            whole = len(lacking) == sum(of == graph for of, _ in has)
            if lacking:
                told = "all rows" if whole else ", ".join(f"`{name}`" for name in lacking)
                tables.setdefault((graph, told), []).append(str(number_of))
    return [
        f"{graph}, table{'s' if len(found) > 1 else ''} {', '.join(found)}: {told}"
        for (graph, told), found in tables.items()
    ]


def row_grids(raw: RawFiles) -> list[Grid]:
    return [row_grid(graph, raw) for graph in ROW_GRAPHS]


def cost_grids(raw: RawFiles) -> list[Grid]:
    return [cost_grid(graph, raw) for graph in ROW_GRAPHS]


SUMMED: dict[str, tuple[str, Callable[[RawFiles], list[Grid]]]] = {
    "rows": ("Every row of a graph at a glance", row_grids),
    "costs": ("What the rows cost", cost_grids),
}
"""Tables over the paper's: the same rows, told by graph."""


def _is_near(column: str, gap: float) -> bool:
    """Within .010 of the paper, or better."""
    return (-gap if column.endswith("rmse") else gap) >= -CLOSE
