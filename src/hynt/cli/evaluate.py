"""`hynt evaluate`: a run's answers to every question of a held-out split, by the one protocol."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.cli.train import Device
from hynt.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="evaluate", pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


class Ties(StrEnum):
    REALISTIC = "realistic"
    HYNT = "hynt"


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by `hynt train`.")],
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
    device: Annotated[Device, typer.Option("--device", help="Where to score.")] = Device.AUTO,
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Write each question's result as Parquet.")
    ] = None,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Ask RUN every question of a split and print how well it answered. Readings of a split are counted in the run."""
    from hynt.evaluation.evaluator import evaluate as asked
    from hynt.evaluation.question_file import write_questions
    from hynt.evaluation.questions import checked_tasks
    from hynt.training.loading import load_run
    from hynt.training.run import chosen_device

    check_save(save)
    check_save(questions)
    tasks = checked_tasks(name.strip() for name in task.split(",") if name.strip())
    target = chosen_device(device.value)
    loaded = load_run(run, target)
    if split in loaded.described()["trained_on"].split("+"):
        raise UsageError(
            f"the run was trained on {split}, so its answers there say nothing.", where="--split",
            advice="Choose another split.",
        )  # fmt: skip
    loaded.graph.split(split)  # refuses an unknown split before it is counted
    reads = loaded.run.count_read(split)
    found = asked(
        loaded.model, loaded.graph, loaded.scaling, split, tasks, ties.value, target, type_constrained,
        literals=loaded.literals, described=loaded.described() | {"reads_of_split": reads},
    )  # fmt: skip
    if questions is not None:
        write_questions(found, questions)
    result = found.to_mapping()
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result))


def _print(console: Console, result: dict[str, Any]) -> None:
    from rich.table import Table

    protocol = result["protocol"]
    console.print(
        f"{protocol['model']} on {protocol['graph'] or 'the graph'}, {protocol['split']} split; trained on "
        f"{protocol['trained_on']}, numbers scaled on {protocol['scaled_on']}, seed {protocol['seed']}, epoch "
        f"{protocol['epoch']}; ties {protocol['ties']}, filter {protocol['filter']}; this split was read "
        f"{protocol['reads_of_split']} times"
    )
    ranked = [task for task in ("link", "relation", "link_type_constrained") if task in result]
    if ranked:
        table = Table("task", "scope", "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "questions")
        for task in ranked:
            for scope in ("triplet", "all"):
                found = result[task][scope]
                names = ("mrr", "hits@1", "hits@3", "hits@10")
                cells = [_number(found[name]) for name in names]
                table.add_row(
                    task.replace("_", " "), scope, *cells, _number(found["mean_rank"], 1), f"{found['count']:,}"
                )
        console.print(table)
    if "number" in result:
        table = Table("task", "scope", "RMSE (scaled)", "MAE (scaled)", "questions")
        for scope in ("triplet", "all"):
            found = result["number"][scope]
            table.add_row("number", scope, _number(found["rmse"]), _number(found["mae"]), f"{found['count']:,}")
        console.print(table)


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
