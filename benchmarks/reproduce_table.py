r"""The tables of `docs/results/baselines.md`, from the JSON that `benchmarks.reproduce` wrote.

    cd docs/results/raw
    python -m benchmarks.reproduce_table baselines-hn-yg.json baselines-hn-wk-resplit.json baselines-wd50k.json \
        baselines-wikipeople.json --hynt HN-YG=hn-yg-link.json --hynt HN-WK-resplit=hn-wk-resplit-link.json \
        --hynt WD50K=wd50k-link.json --hynt WikiPeople-=wikipeople-link.json

Each cell is ours, with the paper's in brackets where it prints one. A row marked * is budget-limited: time ended before
the authors' schedule did. What was changed from the preset stands in the last table of a graph. `--hynt GRAPH=FILE`
sets HyNT beside them, by the first seed of a file of `benchmarks/device.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paper_baselines import ATTRIBUTES, BENCHMARK_LINK, LINK, NUMBER, ORDER, PER_ATTRIBUTE, RELATION
from benchmarks.result_file import Row, read_results, trial_of_row

CLOSE = 0.010
PAPERS_NAME = {"HN-WK-resplit": "HN-WK"}
OPENING = """# The baselines on the paper's graphs

See what each baseline reaches here beside what the HyNT paper prints for it. Made by `tools/results_pages.py` from the
raw files named below, which `python -m benchmarks.reproduce` wrote on one NVIDIA H200.

Each cell is measured on the test split, with realistic ties and one seed; the paper's figure stands in brackets.
**\\*** marks rows whose time ended before the authors' schedule did. Settings are those of the presets `MODEL-paper`
with the changes listed. Several models shared the card, so seconds and facts/s are not those of a card alone, and
compiling is left out. Where a model was run more than once, the row is the one that ran out the authors' schedule, else
the one that validated best; the others are in `raw/baselines-aside.json`. `hynt` is the first seed of
[its own results](index.md).
"""


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; nothing where there is no row."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}", *lines]) + "\n" if lines else ""


def value(row: Mapping[str, Any], task: str, scope: str, metric: str) -> float | None:
    """One metric of a row; None where the model is not asked, or not about qualifiers."""
    if scope == "all" and not any(answer.startswith(f"{task}, qualifier") for answer in row["answers"]):
        return None
    found = row["test"]["realistic"].get(task, {}).get(scope, {}).get(metric)
    return None if found is None else float(found)


def _negatives(row: Mapping[str, Any]) -> list[str]:
    """Where a row's negatives came from: presets have not always said the same, and much hangs on it."""
    pool = row["settings"]["model"].get("pool")
    is_said = any(change.startswith("model.pool=") for change in row["changes"])
    return [] if pool is None or is_said else [f"model.pool={pool}"]


def cell(ours: float | None, papers: float | None = None, digits: int = 4) -> str:
    """`.1876 (.1826)`."""
    mine = "–" if ours is None else _written(ours, digits)
    return mine if papers is None else f"{mine} ({_written(papers, digits)})"


def _written(number: float, digits: int) -> str:
    return f"{number:.{digits}f}".removeprefix("0") if 0 <= number < 1 else f"{number:.{digits}f}"


def _at(found: Sequence[float | None] | None, index: int) -> float | None:
    return None if found is None or index >= len(found) else found[index]


def by_model(rows: Sequence[Row], graph: str) -> dict[str, Mapping[str, Any]]:
    """Rows of a graph in the paper's order."""
    found = {str(row.model): trial(row) for row in rows if row.graph == graph and row.settings and row.runs}
    return dict(sorted(found.items(), key=lambda one: ORDER.index(one[0]) if one[0] in ORDER else len(ORDER)))


def name_of(row: Mapping[str, Any]) -> str:
    """The model, marked where its budget ended first."""
    return f"`{row['model']}`" + (" \\*" if row["budget_limited"] else "")


def link_table(rows: Mapping[str, Any], trivial: Mapping[str, Any], graph: str) -> str:
    """MRR and Hits of triplets, and MRR of all."""
    papers, benchmark = LINK.get(graph, {}), BENCHMARK_LINK.get(graph, {})
    cells = []
    for model, row in [*rows.items(), *trivial.items()]:
        if "link" not in row["test"]["realistic"]:
            continue
        one, tri = papers.get(model), benchmark.get("triplet", {}).get(model)
        places = (0, 3, 2, 1) if one is not None else (0, 2, 9, 1)
        printed = [_at(one or tri, place) for place in places]
        metrics = ("mrr", "hits@1", "hits@3", "hits@10")
        found = [cell(value(row, "link", "triplet", m), p) for m, p in zip(metrics, printed, strict=True)]
        everywhere = cell(value(row, "link", "all", "mrr"), _at(benchmark.get("all", {}).get(model), 0))
        cells.append([name_of(row) if "budget_limited" in row else model, *found, everywhere])
    return table(["link", "MRR", "H@1", "H@3", "H@10", "MRR, all"], cells)


def pair_table(
    rows: Mapping[str, Any], trivial: Mapping[str, Any], task: str, metric: str, papers: Mapping[str, Any]
) -> str:
    """One metric of triplets and of all."""
    cells = []
    for model, row in [*rows.items(), *trivial.items()]:
        if task not in row["test"]["realistic"]:
            continue
        printed = papers.get(model)
        found = [cell(value(row, task, s, metric), _at(printed, i)) for i, s in enumerate(("triplet", "all"))]
        cells.append([name_of(row) if "budget_limited" in row else model, *found])
    return table([task, f"{metric.upper()}, triplet", f"{metric.upper()}, all"], cells)


def attribute_table(rows: Mapping[str, Any], trivial: Mapping[str, Any], graph: str) -> str:
    """RMSE in original units of the attributes that the paper shows; the paper's are of another split."""
    cells = []
    for model, row in [*rows.items(), *trivial.items()]:
        found = {one["relation"]: one["rmse"] for one in row.get("per_relation", [])}
        mine = [_attribute(found, code) for code in ATTRIBUTES]
        if not any(one is not None for one in mine):
            continue
        printed = PER_ATTRIBUTE.get(model, ()) if PAPERS_NAME.get(graph) else ()
        digits = (1, 3, 3, 1)
        shown = [cell(one, _at(printed, i), digits[i]) for i, one in enumerate(mine)]
        cells.append([name_of(row) if "budget_limited" in row else model, *shown])
    return table(["RMSE in original units", *(f"{name} ({code})" for code, name in ATTRIBUTES.items())], cells)


def _attribute(found: Mapping[str, float], code: str) -> float | None:
    names = [name for name in found if name == code or name.endswith(f"({code})") or name.startswith(f"{code} ")]
    return found[names[0]] if names else None


def cost_table(rows: Mapping[str, Any]) -> str:
    """Epochs, time, speed, memory, and what differs from the preset."""
    cells = []
    for row in rows.values():
        speed = "–" if row["facts_per_second"] is None else f"{row['facts_per_second']:,.0f}"
        curve = [point["value"] for point in row["curve"]]
        cells.append(
            [
                name_of(row),
                f"{row['epochs']} of {row['schedule_epochs']}",
                f"{row['train_seconds']:.0f}",
                speed,
                f"{row['peak_memory_bytes'] / 1e9:.1f}",
                " ".join(cell(one, digits=3) for one in curve),
                "; ".join(_remarks(row)),
                f"`{row['commit']}`" if "commit" in row else "–",
            ]
        )
    titles = ["model", "epochs", "train s", "facts/s", "GPU memory, GB", "validation curve", "changed", "commit"]
    return table(titles, cells)


def _remarks(row: Mapping[str, Any]) -> Iterator[str]:
    """What differs from the preset, how that was chosen, and whether only a part of the test split was asked about."""
    yield ", ".join(f"`{change}`" for change in [*row["changes"], *_negatives(row)]) or "–"
    if "searched" in row:
        tried = [
            f"{', '.join(one['changes']) or 'the preset'}: {cell(one['value'], digits=3)}" for one in row["searched"]
        ]
        yield f"best on validation of {len(tried)} ({'; '.join(tried)})"
    facts = row.get("protocol", {}).get("test_facts", "all")
    if facts != "all":
        yield f"{facts:,} of the test facts"


def reached(rows: Mapping[str, Any], graph: str) -> str:
    """Which rows come within CLOSE of the paper's, or are better; nothing where it prints none of this graph."""
    links = {model: found[0] for model, found in LINK.get(graph, {}).items()}
    links |= {model: found[0] for model, found in BENCHMARK_LINK.get(graph, {}).get("triplet", {}).items()}
    numbers = {model: found[0] for model, found in NUMBER.get(graph, {}).items()}
    told = []
    for task, metric, papers, sign in (("link", "mrr", links, 1), ("number", "rmse", numbers, -1)):
        pairs = [(model, value(row, task, "triplet", metric), papers.get(model)) for model, row in rows.items()]
        both = [(model, ours, theirs) for model, ours, theirs in pairs if ours is not None and theirs is not None]
        if both:
            close = [f"`{model}`" for model, ours, theirs in both if sign * (ours - theirs) >= -CLOSE]
            told.append(f"{metric.upper()} of {task}s {', '.join(close) or 'none'} ({len(close)} of {len(both)})")
    return f"Within .010 of the paper's, or better, for triplets: {'; '.join(told)}." if told else ""


def hynt_row(file: Path) -> dict[str, Any]:
    """HyNT's row, by the first seed of the first job of a file."""
    row = read_results(file).rows[0]
    found = trial(row)
    found["answers"] = [f"{task}, qualifier" for task in found["test"]["realistic"]]
    return {name: found[name] for name in ("model", "answers", "test", "per_relation")}


def trial(row: Row) -> dict[str, Any]:
    """The first seed of a row, as `hynt compare` tells of it."""
    run = row.runs[0]
    found = trial_of_row(row, run)
    curve = [{"value": value} for _, _, value in run.curve]
    relations = [{"relation": name, **errors} for name, errors in run.per_relation.items()]
    facts = {"test_facts": run.cost.get("test_facts", "all")}
    found |= {"curve": curve, "per_relation": relations, "protocol": facts, "commit": row.commit}
    found |= {"settings": row.settings, "changes": row.changes}
    return found | ({"searched": row.measured["searched"]} if "searched" in row.measured else {})


def page(files: Sequence[Path], hynt: Mapping[str, Path]) -> Iterator[str]:
    """The whole page, graph by graph."""
    yield OPENING
    for file in files:
        result = read_results(file, "give files that `benchmarks.reproduce` wrote").rows
        for graph in sorted({str(row.graph) for row in result}):
            rows, beside = by_model(result, graph), dict[str, Any]()
            for one in result:
                if one.graph == graph and one.runs and not one.settings:
                    beside[str(one.model)] = trial(one)
                    del beside[str(one.model)]["budget_limited"]
            if graph in hynt:
                beside = {"`hynt`": hynt_row(hynt[graph])} | beside
            papers = PAPERS_NAME.get(graph, graph)
            yield f"## {graph}\n\nRaw, with the commands: `raw/{file.name}`."
            if papers != graph:
                yield f"The paper's figures are of {papers}, whose split differs: they are here for orientation."
            else:
                yield reached(rows, graph)
            yield link_table(rows, beside, papers)
            yield pair_table(rows, beside, "relation", "mrr", RELATION.get(papers, {}))
            yield pair_table(rows, beside, "number", "rmse", NUMBER.get(papers, {}))
            yield attribute_table(rows, beside, graph)
            yield cost_table(rows)
            failed = [one for one in result if one.graph == graph and not one.runs]
            if failed:
                named = "; ".join(f"`{one.model}` ({one.measured['failed']})" for one in failed)
                yield f"Without a row: {named}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--hynt", action="append", default=[], metavar="GRAPH=FILE", help="HyNT's figures on a graph")
    given = parser.parse_args()
    hynt = {graph: Path(file) for graph, _, file in (one.partition("=") for one in given.hynt)}
    print("\n\n".join(part.rstrip() for part in page(given.files, hynt) if part))


if __name__ == "__main__":
    main()
