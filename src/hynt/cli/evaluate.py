"""`hynt evaluate`: a run's answers to every question of a held-out split, by the one protocol."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.arguments import Device, RunArgument, ScoringDevice
from hynt.cli.evaluation_tables import print_evaluation
from hynt.cli.output import JsonFlag, SaveFile, check_parquet, check_save, deliver
from hynt.cli.progress import QuestionProgress
from hynt.errors import UsageError
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.evaluation.evaluator import Evaluator

GROUPINGS = ("relation", "position", "qualifiers", "frequency")


class Ties(StrEnum):
    REALISTIC = "realistic"
    HYNT = "hynt"


def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option("--split", help="Which split to ask.")] = "test",
    task: Annotated[
        str, typer.Option("--task", metavar="TASKS", help="Some of link, relation, number, with commas between.")
    ] = "link,relation,number",
    ties: Annotated[
        Ties, typer.Option("--ties", help="How ties rank; hynt rounds down, as the published script does.")
    ] = Ties.REALISTIC,
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
    from hynt.evaluation.question_file import write_questions
    from hynt.evaluation.questions import checked_tasks

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
    from hynt.training.distributed_follow import team_of
    from hynt.training.run import chosen_device

    target = chosen_device(device.value)

    def evaluator_of(loaded: Any, team: Any) -> Evaluator:
        described = loaded.described() | {"reads_of_split": _counted(loaded, split, counts=team.rank == 0)}
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
            team=team,
        )

    with team_of(target) as team:
        loaded = _opened(run, split, target)
        rival = None if other is None else _opened(other, split, target)  # refused before a split is read
        if rival is not None:
            _refuse_another_graph(loaded, rival)
        evaluator = evaluator_of(loaded, team)
        found = _asked(evaluator, loaded.model, "evaluating")
        result = found.to_mapping()
        if references:
            from hynt.reporting.trivial_rows import worse_than_trivial

            result["references"] = references_of(evaluator, loaded)
            result["notes"] = worse_than_trivial(result, result["references"])
        if rival is not None:
            from hynt.evaluation.comparison import compare

            other_found = _asked(evaluator_of(rival, team), rival.model, "evaluating the other run")
            result["comparison"] = compare(found, other_found)
        if team.rank:
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
    from hynt.runs.run_graph import whole_run

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
    from hynt.runs.run_graph import whole_run

    with whole_run():
        return int(loaded.run.count_read(split) if counts else loaded.run.reads(split))


def _asked(evaluator: Any, model: Any, what: str) -> Any:
    if evaluator.team.rank:
        return evaluator.evaluate(model)
    with QuestionProgress(what) as progress:
        return evaluator.evaluate(model, progress)


def references_of(evaluator: Any, loaded: Any) -> dict[str, Any]:
    """The trivial rows that stand beside a run, from the facts it learned from."""
    from hynt.batches.fact_tensors import FactTensors
    from hynt.evaluation.reference_rows import reference_rows
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
    from hynt.evaluation import breakdowns
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
