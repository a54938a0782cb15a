"""`hynt complete`: answers to a whole file of questions, or proposals of facts that the graph lacks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.cli.options import AskedRunOptions, LevelOption, RunArgument, argument, done_in_processes, option, said
from hynt.cli.output import Output, note_to_person, print_table
from hynt.errors import UsageError
from hynt.files import check_parquet
from hynt.names import plural
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.front.completing import ProposalReport
    from hynt.graph.knowledge_graph import KnowledgeGraph

_SHOWN = 10


class CandidateChoice(StrEnum):
    """Of a list that can be repeated, typer takes no literal types."""

    TYPE = "type"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ProposalWords:
    """Which facts are proposed with --missing."""

    relations: list[str] | None = option(None, "--missing: only this one. Repeatable.", metavar="R")
    budget: int = option(1000, "--missing: the most proposals in all.", min=1)
    threshold: float = option(0.5, "--missing: the least probability of a proposed fact.", min=0, max=1)
    widest: float = option(0.5, "--missing: the greatest relative width of a proposed number's interval.")
    per_relation: int | None = option(None, "--missing: the most proposals for one relation.", min=1)
    share: float = option(0.75, "--missing: the share of peers that must have a relation.", min=0, max=1)
    without: list[str] | None = option(
        None, "--missing: treat a split as unknown; see what it confirms.", metavar="SPLIT"
    )


def complete(
    run: RunArgument,
    questions: Path | None = argument(
        None, "Facts with one ? each: .jsonl, .csv, .tsv or .parquet.", metavar="QUESTIONS"
    ),
    out: Path | None = option(None, "The Parquet file to write.", metavar="FILE"),
    top: int | None = option(None, "Answers to a question: 10, or 1 with --missing.", min=1),
    level: LevelOption = 0.9,
    candidates: list[CandidateChoice] | None = option(
        None, "Only answers seen in that place, or only unknown ones. Repeatable."
    ),
    on_error: Literal["stop", "record"] = option(
        "stop", "Refuse the whole file for a bad question, or record why as a row."
    ),
    resume: bool = option(False, "Resume a job that was stopped."),
    missing: bool = option(False, "Propose facts for entities that lack a relation their peers have."),
    processes: int = option(1, "Answer in N processes, one per GPU with cuda.", min=1, metavar="N"),
    *,
    proposals: ProposalWords,
    asked: AskedRunOptions,
    output: Output,
) -> None:
    """Answer every question of QUESTIONS with RUN; or, with --missing, propose facts that its graph lacks."""
    out = _checked_out(out, questions)
    if missing:
        several = processes if processes > 1 else None
        refused = {"QUESTIONS": questions, "--resume": resume, "--candidates": candidates, "--processes": several}
        _refuse(refused, "with --missing")
        opened = asked.opened(run, asked.device)
        found = opened.propose(out=out, level=level, top=top or 1, progress=True, **said(proposals))
        counts: dict[str, Any] = {"run": str(run), **opened.described(), "out": str(out), **found.counts()}
        output.deliver(counts, lambda console: _tell_proposals(console, counts, found, opened.graph))
        return
    own = {"relations": "--relations", "per_relation": "--per-relation", "without": "--without"}
    _refuse({option: vars(proposals)[name] for name, option in own.items()}, "without --missing")
    if questions is None:
        raise UsageError(
            "no questions were given.",
            where="QUESTIONS",
            advice="Give a .jsonl, .csv or .parquet file of facts with one ? each, or say --missing.",
        )
    if done_in_processes(processes, "the job stopped; what is done is kept.", "Go on with --resume."):
        return
    from hynt.front.training import is_first_process

    opened = asked.opened(run, asked.device)
    kinds: list[Any] = [kind.value for kind in candidates or ()]
    try:
        done = opened.complete(
            questions,
            out,
            top=top or 10,
            level=level,
            candidates=kinds,
            on_error=on_error,
            resume=resume,
            progress=True,
        )
    except KeyboardInterrupt:
        note_to_person("what is done so far is kept; say --resume to go on")
        raise
    if not is_first_process():
        return
    result: dict[str, Any] = {
        "run": str(run),
        **opened.described(),
        "questions_file": str(questions),
        "out": str(out),
        "questions": done.questions,
        "rows": done.rows,
        "without_answer": done.refused,
        "resumed_from": done.resumed_from,
        "seconds": round(done.seconds, 3),
        "questions_per_second": round(done.questions_per_second, 1),
    }
    output.deliver(result, lambda console: _tell_answers(console, result, done.was_finished))


def _tell_answers(console: Console, result: dict[str, Any], was_finished: bool) -> None:
    told = f"{plural(result['questions'], 'question')}, {plural(result['rows'], 'row')} in {visible(result['out'])}"
    if was_finished:
        console.print(f"{told}: it was done already")
        return
    if result["resumed_from"]:
        told += f" ({result['resumed_from']:,} were answered before)"
    console.print(f"{told}; {result['seconds']:.1f} s, {result['questions_per_second']:,.0f} a second")
    if result["without_answer"]:
        have = f"{plural(result['without_answer'], 'question')} {'has' if result['without_answer'] == 1 else 'have'}"
        console.print(f"{have} no answer; the column `error` says why")


def _tell_proposals(console: Console, result: dict[str, Any], found: ProposalReport, graph: KnowledgeGraph) -> None:
    from hynt.front.completing import told_expected
    from hynt.graph.sentences import format_quantity

    rows = []
    for row in found.table.slice(0, _SHOWN).to_pylist():
        told = [end for end in (row["low"], row["high"]) if end is not None]
        unit = graph.relations[graph.vocabulary.relation_ids[row["relation"]]].unit
        ends = [format_quantity(end, unit, told[1] - told[0] if len(told) == 2 else None) for end in told]
        interval = " to ".join(ends) or "-"
        rows.append((str(row["rank"]), row["sentence"], f"{row['probability']:.3f}", interval, f"{row['share']:.0%}"))
    if rows:
        print_table(console, ("rank", "proposed fact", "probability", "interval", "peers that have it"), rows)
    console.print(
        f"{plural(result['proposals'], 'proposal')} in {visible(result['out'])} "
        f"({result['of_entities']:,} of entities, {result['of_numbers']:,} of numbers), "
        f"from {plural(result['questions'], 'question')} about {plural(result['relations_lacked'], 'relation')}"
    )
    if not result["questions"] and not result["not_answerable"]:
        console.print("no entity lacks a relation that enough of its peers have: a lower --share asks for fewer peers")
    elif not result["proposals"] and result["below_threshold"]:
        console.print(
            f"{result['below_threshold']:,} answers were not sure enough: a lower --threshold, or a higher --widest "
            "for numbers, lets them in"
        )
    if expected := told_expected(result):
        console.print(expected)
    if result["oversight_rate"] is None:
        console.print(
            "too little was held out to tell what the graph lacks by oversight: probabilities say how likely an answer "
            "is, if there is one"
        )
    elif result["questions"]:
        console.print(
            "for every 100 facts of its validation split the graph seems to lack "
            f"{100 * result['oversight_rate']:,.2f} by oversight; its other gaps are taken to be "
            "right, as a country without railways has no length of them; "
            "--threshold 0 lists every guess"
        )
    if result["checked"]:
        console.print(
            f"hidden facts say something of {result['checked']:,} of them, and confirm {result['confirmed']:,}"
        )


def _checked_out(out: Path | None, questions: Path | None) -> Path:
    if out is None:
        raise UsageError("there is no place for the answers.", where="--out", advice="Say --out FILE.parquet.")
    if questions is not None and out.resolve() == questions.resolve():
        raise UsageError("the answers would replace the questions.", where="--out", advice="Give another name.")
    check_parquet(out, "--out")
    return out


def _refuse(given: dict[str, Any], when: str) -> None:
    for name, value in given.items():
        if value:
            raise UsageError(f"{name} has no meaning {when}.", where=name, advice="Leave one of the two out.")
