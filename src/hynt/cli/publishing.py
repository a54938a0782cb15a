"""What others get to see: `hynt report` writes one page that says what a run is and how far it can be trusted,
`hynt export` its scoring model for programs that have no torch, `hynt push` gives a run away, as a folder laid out like
a hub repository or to the hub itself, and `hynt pull` takes one, checked to the byte.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.cli.options import AsOf, RunArgument, ScoringDevice, argument, option
from hynt.cli.output import Output, SavedOutput, note_to_person
from hynt.names import plural
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def report(
    run: RunArgument,
    out: Path = option(..., "Where to write the page, as .html.", "--out", "-o", metavar="FILE"),
    split: str = option("test", "The held-out split to measure on: valid or test."),
    entity: str | None = option(None, "Whose facts to draw; by default the head with the most relations."),
    again: bool = option(False, "Measure again, instead of using kept figures without reading the split."),
    device: ScoringDevice = "auto",
    *,
    output: SavedOutput,
) -> None:
    """Write one self-contained page about RUN: metrics, breakdowns, calibration, coverage, surest answers, settings."""
    from hynt.front.run import Run

    opened = Run(run, device, note_to_person)
    made = opened.report(out, split, entity=entity, again=again, progress=True)
    result: dict[str, Any] = {
        "run": str(run),
        "out": str(out),
        "bytes": out.stat().st_size,
        **opened.described(),
        "split": split,
        "reads_of_split": made.measurements["reads_now"],
        "reused": made.reused,
        "sections": list(made.sections),
    }
    output.deliver(result, lambda console: _print_report(console, result))


def _print_report(console: Console, result: dict[str, Any]) -> None:
    console.print(f"{result['out']}: {result['bytes'] / 1e3:,.0f} kB, {len(result['sections'])} sections")
    how = "measured before; the split was not read again" if result["reused"] else "measured now"
    console.print(f"figures of the {result['split']} split: {how}; times it was read: {result['reads_of_split']}")


def export(
    run: Path = argument(..., "A finished run.", metavar="RUN"),
    out: Path = option(..., "The file to write, such as model.onnx.", metavar="FILE"),
    format: Literal["onnx"] = option("onnx", "The format of the file."),
    qualifiers: int | None = option(
        None, "The most qualifiers a fact may have; by default as in the graph.", min=1, max=256
    ),
    overwrite: bool = option(False, "Replace FILE."),
    *,
    output: Output,
) -> None:
    """Write the scoring model of RUN to FILE, after comparing its answers with torch's."""
    from hynt.front.run import Run

    result = Run(run, "cpu").export(out, format, qualifiers=qualifiers, overwrite=overwrite)
    output.deliver(result, lambda console: _print_export(console, result))


def _print_export(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{visible(result['model'])} with up to {result['qualifiers']} qualifiers per fact, "
        f"{result['bytes'] / 1e6:.1f} MB, in {result['file']}"
    )
    for name, far in result["largest_difference"].items():
        console.print(f"  {name}: at most {far:.1e} from torch, over {result['questions_tried']} questions")


def push(
    run: Path = argument(..., "A finished run.", metavar="RUN"),
    destination: str = argument(..., "A folder, or hf:owner/name on the hub.", metavar="DEST"),
    evaluation: Path | None = option(None, "What `hynt evaluate RUN --save FILE` wrote.", metavar="FILE"),
    licence: str = option("", "The model's, such as cc-by-4.0; by default the graph's."),
    as_of: AsOf = None,
    overwrite: bool = option(False, "Replace what an earlier push left in DEST."),
    public: bool = option(False, "Make a new repository on the hub public."),
    *,
    output: Output,
) -> None:
    """Publish RUN, with the updates of its graph and a model card. Weights are safetensors; nothing is a pickle."""
    from hynt.front.publishing import push as give

    result = give(
        run, destination, evaluation=evaluation, licence=licence, version=as_of, overwrite=overwrite, public=public
    )
    output.deliver(result, lambda console: _print_pushed(console, result))


def _repository(destination: str) -> str:
    """What was given, where it can be a repository's name as well."""
    return destination if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", destination, re.ASCII) else "owner/name"


def _print_pushed(console: Console, result: dict[str, Any]) -> None:
    where = "the repository" if result["on_the_hub"] else "the folder"
    console.print(f"{len(result['files'])} files of {result['run']} are in {where} {result['destination']}")
    if not result["on_the_hub"]:
        console.print(f"it is on this machine; to send it to the hub, say hf:{_repository(result['destination'])}")
    if result["left_out"]:
        console.print(f"left out, since a run works without them: {visible(', '.join(result['left_out']))}")
    if result["updates"]:
        console.print(f"with {plural(result['updates'], 'update')} of its graph, which anyone who pulls it can read")
    if result["updates_left_out"]:
        console.print(f"without {plural(result['updates_left_out'], 'later update')} of its graph")
    if result["licence"] is None:
        console.print("no licence is stated: see that you may give the graph away, and say --licence")
    if not result["graph_included"]:
        console.print("the graph is not part of the run: whoever pulls it needs the graph as well")
    console.print(f"next: hynt pull {result['destination']} RUN")


def pull(
    source: str = argument(..., "A folder, or hf:owner/name on the hub.", metavar="SOURCE"),
    out: Path = argument(..., "The run folder to make.", metavar="OUT"),
    *,
    output: Output,
) -> None:
    """Fetch the run at SOURCE. The hash of each file is checked first; what is not part of a run is left out."""
    from hynt.front.publishing import pulled

    result = pulled(source, out)
    output.deliver(result, lambda console: _print_pulled(console, result))


def _print_pulled(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{visible(result['model'])} on {visible(result['graph'])}: {len(result['files'])} files, "
        f"all as listed, in {result['run']}"
    )
    if result["updates"]:
        console.print(f"with {plural(result['updates'], 'update')} of its graph: hynt update {result['run']} --log")
    if result["passed_over"]:
        console.print(f"passed over, since no run has them: {visible(', '.join(result['passed_over']))}")
    if not result["graph_included"]:
        console.print("the graph was not given away with the run: put it where the model card says")
    console.print(f"next: hynt predict {result['run']} --help")
