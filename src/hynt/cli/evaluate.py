"""`hynt evaluate`: a run's answers to every question of a held-out split, by the one protocol."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import Device, RunArgument, ScoringDevice
from hynt.cli.output import JsonFlag, SaveFile, check_parquet, check_save, deliver, visible
from hynt.cli.progress import QuestionProgress
from hynt.errors import UsageError
from hynt.names import advice_on

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.evaluation.evaluator import Evaluator


GROUPINGS = ("relation", "position", "qualifiers", "frequency")


class TiesChoice(StrEnum):
    REALISTIC = "realistic"
    HYNT = "hynt"


def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option("--split", help="Which split to ask.")] = "test",
    task: Annotated[
        str, typer.Option("--task", metavar="TASKS", help="Some of link, relation, number, with commas between.")
    ] = "link,relation,number",
    ties: Annotated[
        TiesChoice, typer.Option("--ties", help="How ties rank; hynt rounds down, as the published script does.")
    ] = TiesChoice.REALISTIC,
    type_constrained: Annotated[
        bool, typer.Option("--type-constrained", help="Rank also among entities that train holds at that place.")
    ] = False,
    device: ScoringDevice = Device.AUTO,
    references: Annotated[
        bool, typer.Option("--references/--no-references", help="Whether trivial models stand beside the run.")
    ] = True,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add 95 % bootstrap intervals, drawn over facts.")
    ] = False,
    breakdown: Annotated[
        str, typer.Option("--breakdown", metavar="BY", help=f"Some of {', '.join(GROUPINGS)}, with commas between.")
    ] = "",
    other: Annotated[
        Path | None, typer.Option("--compare", metavar="RUN", help="Another run, compared question by question.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Write each question's result as Parquet.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, metavar="N", help="Ask in N processes, one a GPU with --device cuda.")
    ] = 1,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Ask RUN every question of a split and print how well it answered. Readings of a split are counted in the run."""
    from hynt.distributed.launch import is_launched, launch
    from hynt.evaluation.evaluator import Evaluator
    from hynt.evaluation.questions import checked_tasks
    from hynt.evaluation.results import write_questions

    check_save(save)
    if questions is not None:
        check_parquet(questions, "--questions")
    groupings = _groupings(breakdown)
    tasks = checked_tasks(name.strip() for name in task.split(",") if name.strip())
    if processes > 1 and not is_launched():
        code = launch(sys.argv[1:], processes, "the evaluation stopped.", "Say the same command again.")
        if code:
            raise typer.Exit(code)
        return
    from hynt.distributed.worker_group import current_workers
    from hynt.training.run import chosen_device

    target = chosen_device(device.value)

    def evaluator_of(loaded: Any, workers: Any) -> Evaluator:
        described = loaded.described() | {"reads_of_split": _counted(loaded, split, counts=workers.rank == 0)}
        return Evaluator(
            loaded.graph,
            loaded.scaling,
            split,
            tasks,
            ties.value,
            target,
            type_constrained,
            literals=loaded.literals,
            described=described,
            workers=workers,
        )

    with current_workers(target) as workers:
        loaded = _opened(run, split, target)
        rival = None if other is None else _opened(other, split, target)  # refused before a split is read
        if rival is not None:
            _refuse_another_graph(loaded, rival)
        evaluator = evaluator_of(loaded, workers)
        found = _asked(evaluator, loaded.model, "evaluating")
        result = found.to_mapping()
        if references:
            from hynt.reporting.trivial_rows import worse_than_trivial

            result["references"] = references_of(evaluator, loaded)
            result["notes"] = worse_than_trivial(result, result["references"])
        if rival is not None:
            from hynt.evaluation.bootstrap import compare

            other_found = _asked(evaluator_of(rival, workers), rival.model, "evaluating the other run")
            result["comparison"] = compare(found, other_found)
        if workers.rank:
            return  # the first process has all answers, and tells
    if questions is not None:
        write_questions(found, questions)
    if intervals:
        result["intervals"] = _intervals(found)
    if groupings:
        result["breakdowns"] = _breakdowns(found, loaded, groupings)
    deliver(result, as_json=as_json, save=save, text=lambda console: print_evaluation(console, result))


def _opened(run: Path, split: str, device: Any) -> Any:
    """The run, which may be asked about this split."""
    from hynt.runs.opening import load_run
    from hynt.runs.place import whole_run

    with whole_run():
        loaded = load_run(run, device)
    if split in loaded.described()["trained_on"].split("+"):
        raise UsageError(
            f"the run was trained on {split}, so its answers there say nothing.",
            where="--split",
            advice="Choose another split.",
        )
    loaded.graph.split(split)  # refuses an unknown split before it is counted
    return loaded


def _refuse_another_graph(loaded: Any, rival: Any) -> None:
    from hynt.runs.graph_identity import graph_differences

    differ = graph_differences(*(one.run.manifest["graph"]["fingerprints"] for one in (loaded, rival)))
    if differ:
        raise UsageError(
            f"the two runs have different graphs ({'; '.join(differ)}).",
            where="--compare",
            advice="Compare runs on one graph.",
        )


def _counted(loaded: Any, split: str, *, counts: bool) -> int:
    """How often this split has been read now; of several processes one counts."""
    from hynt.runs.place import whole_run

    with whole_run():
        return int(loaded.run.count_read(split) if counts else loaded.run.reads(split))


def _asked(evaluator: Any, model: Any, what: str) -> Any:
    if evaluator.workers.rank:
        return evaluator.evaluate(model)
    with QuestionProgress(what) as progress:
        return evaluator.evaluate(model, progress)


def references_of(evaluator: Any, loaded: Any) -> dict[str, Any]:
    """The trivial rows that stand beside a run, from the facts it learned from."""
    from hynt.batches.fact_tensors import FactTensors
    from hynt.evaluation.evaluator import reference_rows
    from hynt.runs.training_data import training_table

    table = training_table(loaded.graph, loaded.settings)
    train = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, evaluator.device)
    return reference_rows(evaluator, train)


def _intervals(found: Any) -> dict[str, Any]:
    from hynt.evaluation.bootstrap import intervals
    from hynt.evaluation.questions import SCOPES

    return {
        task: {scope: intervals(questions, scope, found.ties) for scope in SCOPES}
        for task, questions in found.per_question.items()
    }


def _breakdowns(found: Any, loaded: Any, groupings: list[str]) -> dict[str, Any]:
    from hynt.evaluation import results as breakdowns
    from hynt.runs.training_data import training_table

    vocabulary = loaded.graph.vocabulary
    frequency = breakdowns.entity_frequency(training_table(loaded.graph, loaded.settings), vocabulary)
    ways = {
        "relation": lambda questions: breakdowns.by_relation(questions, found.ties, vocabulary),
        "position": lambda questions: breakdowns.by_position(questions, found.ties),
        "qualifiers": lambda questions: breakdowns.by_qualifier_count(questions, found.ties),
        "frequency": lambda questions: breakdowns.by_entity_frequency(questions, found.ties, frequency),
    }
    return {
        task: {name: ways[name](questions) for name in groupings if (task, name) != ("relation", "frequency")}
        for task, questions in found.per_question.items()
    }


def _groupings(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in GROUPINGS:
            raise UsageError(
                f"results cannot be broken down by {name!r}.", where="--breakdown", advice=advice_on(name, GROUPINGS)
            )
    return names


# An evaluation as tables for people: metrics with intervals, trivial rows beside them, breakdowns, a comparison.

RANKED = ("mrr", "hits@1", "hits@3", "hits@10")  # a table for 80 columns; the mean rank is in the JSON
NUMBER = ("rmse", "mae")
WORDS = {
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
    "rmse": "RMSE (scaled)",
    "mae": "MAE (scaled)",
}


def print_evaluation(console: Console, result: dict[str, Any]) -> None:
    """Everything that was asked for."""
    protocol = result["protocol"]
    console.print(
        f"{protocol['model']} on {visible(protocol['graph']) or 'the graph'}, {protocol['split']} split; trained on "
        f"{protocol['trained_on']}, numbers scaled on {protocol['scaled_on']}, seed {protocol['seed']}, epoch "
        f"{protocol['epoch']}; ties {protocol['ties']}, filter {protocol['filter']}; times this split was read: "
        f"{protocol['reads_of_split']}"
    )
    _metrics(
        console, result, [task for task in ("link", "relation", "link_type_constrained") if task in result], RANKED
    )
    _metrics(console, result, ["number"] if "number" in result else [], NUMBER)
    for task in ("link", "relation", "number"):
        if task in result and _only_triplets(result, task):
            console.print(f"{task}: {_why_only_triplets(result, task)}", style="dim")
    for note in result.get("notes", ()):
        console.print(note[0].upper() + note[1:], style="bold")
    for task, groupings in result.get("breakdowns", {}).items():
        for grouping, rows in groupings.items():
            _breakdown(console, f"{task} by {grouping}", rows, NUMBER if task == "number" else RANKED)
    for task, scopes in result.get("comparison", {}).items():
        _comparison(console, task, scopes)


def _metrics(console: Console, result: dict[str, Any], tasks: list[str], metrics: tuple[str, ...]) -> None:
    from rich.table import Table

    if not tasks:
        return
    table = Table("task, scope", "model", *(WORDS[metric] for metric in metrics), "asked")
    references = result.get("references", {})
    for task in tasks:
        for scope in ("triplet",) if _only_triplets(result, task) else ("triplet", "all"):
            limits = result.get("intervals", {}).get(task, {}).get(scope, {})
            title = f"{task.replace('_', ' ')}, {scope}"
            table.add_row(*_cells(title, result["protocol"]["model"], result[task][scope], metrics, limits))
            for name, tasks_of_reference in references.items():
                if task in tasks_of_reference:
                    table.add_row(*_cells("", name, tasks_of_reference[task][scope], metrics, {}))
    console.print(table)


def _only_triplets(result: dict[str, Any], task: str) -> bool:
    """Whether nothing in qualifiers was asked: the two scopes are then the same questions."""
    return bool(result[task]["triplet"]["count"] == result[task]["all"]["count"])


def _why_only_triplets(result: dict[str, Any], task: str) -> str:
    left = result["protocol"].get("unanswered", {}).get(task, 0)
    if not left:
        return "the split asks nothing of the kind in qualifiers, so triplets are all"
    model = result["protocol"]["model"]
    return f"only components of triplets were asked; {model} does not answer the other {left:,} questions"


def _cells(
    title: str, model: str, found: dict[str, Any], metrics: tuple[str, ...], limits: dict[str, Any]
) -> list[str]:
    cells = [_number(found[metric], 4, limits.get(metric)) for metric in metrics]
    return [title, model, *cells, f"{found['count']:,}"]


def _breakdown(console: Console, title: str, rows: list[dict[str, Any]], metrics: tuple[str, ...]) -> None:
    from rich.table import Table

    table = Table("group", *(WORDS[metric] for metric in metrics), "asked", title=title, title_justify="left")
    for row in rows:
        cells = [_number(row[metric]) for metric in metrics]
        table.add_row(visible(str(row["group"])), *cells, f"{row['count']:,}")
    console.print(table)


def _comparison(console: Console, task: str, scopes: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("scope", "metric", "this run", "the other", "difference", "95 % interval", "p", title=task)
    for scope, metrics in scopes.items():
        for metric, found in metrics.items():
            if metric not in WORDS:
                continue
            digits = 1 if metric == "mean_rank" else 4
            table.add_row(
                scope,
                WORDS[metric],
                _number(found["first"], digits),
                _number(found["second"], digits),
                _number(found["difference"], digits),
                f"{_number(found['low'], digits)} … {_number(found['high'], digits)}",
                _number(found["p_value"], 3),
            )
    console.print(table)


def _number(value: float | None, digits: int = 4, limits: Any = None) -> str:
    if value is None:
        return "-"
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: a difference that rounds to nothing has no sign
    return f"{text} ({limits[0]:.{digits}f}–{limits[1]:.{digits}f})" if limits else text
