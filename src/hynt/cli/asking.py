"""The verbs that ask a run: `hynt predict` and `explain` about one fact, `hynt trends` about a number over time, `hynt
similar` and `embeddings` about the vectors of entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.options import (
    AskedRunOptions,
    GraphOptions,
    LevelOption,
    QuestionOptions,
    RunArgument,
    argument,
    option,
    said,
)
from hynt.cli.output import Output, SavedOutput, print_table
from hynt.names import plural
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.asking.answers import Answers, NumberAnswer
    from hynt.explanation.explanations import Explanation
    from hynt.trends.trends import Series, Trend


def predict(
    run: RunArgument,
    question: QuestionOptions,
    top: int | None = option(
        None, "How many answers to show; by default those of the first 10 that are stored or new.", min=1
    ),
    *,
    asked: AskedRunOptions,
    output: SavedOutput,
) -> None:
    """Ask RUN for the one component of a fact that is written as ?."""

    opened = asked.opened(run, asked.device)
    answers = opened.predict(**question.arguments(opened.names), top=top or 10)
    result = {"run": str(run), **opened.described(), **answers.to_dict()}
    output.deliver(result, lambda console: _print_answers(console, answers, whole=top is not None))


def _print_answers(console: Console, answers: Answers, *, whole: bool) -> None:
    from hynt.asking.answers import told_of_graph

    console.print(visible(answers.question), style="bold")
    for told, text in told_of_graph(answers):
        console.print(f"  {told}: {visible(text)}")
    if answers.kind == "number":
        _print_number(console, answers[0])  # type: ignore[arg-type]
    else:
        _print_ranked(console, answers, whole=whole)
    for note in answers.notes:
        console.print(f"note: {visible(note)}", style="dim")


def _print_ranked(console: Console, answers: Answers, *, whole: bool) -> None:
    from hynt.asking.answers import NEW_FROM, RankedAnswer, format_probability, in_view, told_of_guesses

    guesses = 0 if answers.stored or answers.new else 1  # something is always shown
    shown = list(answers) if whole else [*answers.new, *answers.guesses[:guesses]]
    if shown:
        ids = ("id",) if answers.is_ambiguous else ()  # where names do not tell answers apart
        rows = []
        for one in shown:
            assert isinstance(one, RankedAnswer)
            named = [one.name, *(one.id for _ in ids)]
            rows.append((str(one.rank), *named, format_probability(one.probability), answers.status(one)))
        print_table(console, ("rank", answers.kind, *ids, "probability", "status"), rows)
    else:
        console.print(f"  new: none with probability {NEW_FROM:g} or more")
    folded = "" if whole else told_of_guesses(answers, guesses)
    if folded:
        console.print(f"  {visible(folded)}; --top 10 shows them", style="dim")
    console.print(f"  of {plural(answers.candidates, 'candidate')}{in_view(answers) if shown else ''}", style="dim")


def _print_number(console: Console, answer: NumberAnswer) -> None:
    def between(ends: tuple[float, float]) -> str:
        return f"{answer.text(ends[0])} to {answer.text(ends[1])}"

    console.print(f"  answer          {visible(answer.text(answer.value))}")
    if answer.interval is not None:
        errors = f"(by errors of {answer.interval_from})"
        console.print(f"  {answer.level:.0%} interval    {visible(between(answer.interval))} {errors}")
    if answer.training_range is not None:
        from hynt.graph.sentences import format_quantity

        reach = " to ".join(format_quantity(end, answer.unit) for end in answer.training_range)
        console.print(f"  training range  {visible(reach)}")


def explain(
    run: RunArgument,
    question: QuestionOptions,
    answer: str | None = option(None, "The entity or relation to explain; by default the first answer."),
    out: Path | None = option(None, "A .png or .svg picture.", metavar="FILE"),
    *,
    asked: AskedRunOptions,
    output: SavedOutput,
) -> None:
    """Ask RUN as predict does, and say which qualifiers and components the answer depends on."""
    from hynt.front.publishing import check_drawing, draw

    pictures = [] if out is None else [out]
    check_drawing(pictures)
    opened = asked.opened(run, asked.device)
    found = opened.explain(**question.arguments(opened.names), answer=answer)
    draw(found, *pictures)
    result = {"run": str(run), **opened.described(), "out": None if out is None else str(out), **found.to_dict()}
    output.deliver(result, lambda console: _print_explanation(console, found, out))


def _print_explanation(console: Console, found: Explanation, out: Path | None) -> None:
    from hynt.asking.answers import format_probability
    from hynt.explanation.explanations import signed

    first = found.answers[0].to_dict()
    console.print(visible(found.answers.question), style="bold")
    if found.about is None:
        low, high = first["low_text"], first["high_text"]
        reach = "" if low is None else f" ({first['level']:.0%} interval {low} to {high})"
        console.print(f"answer: {visible(first['text'] + reach)}")
        columns = ["without", "says", "", "answer", "change", "in interval widths"]
    else:
        console.print(f"first answer: {visible(first['name'])}, probability {format_probability(first['probability'])}")
        console.print(f"explained: {visible(str(found.about))}")
        columns = ["without", "says", "", "probability", "change", "rank", "first answer"]
    looked, rows = found.attention is not None, []
    for one in found.influences:
        shares = (one.context_attention, one.prediction_attention) if looked else ()
        last = signed(one.change_in_widths, 2) if found.about is None else one.answer or ""
        told = ("" if share is None else f"{share:.0%}" for share in shares)
        rows.append((one.part, one.says, one.change, *found.cells(one), last, *told))
    if rows:
        print_table(console, columns + ["context attention", "prediction attention"] * looked, rows)
    if found.attention is not None:
        console.print(f"context attention on the triplet itself: {found.attention.on_context[0]:.0%}", style="dim")
    for note in found.notes:
        console.print(f"note: {visible(note)}", style="dim")
    if out is not None:
        console.print(f"written: {out}")


@dataclass(frozen=True)
class TrendOptions:
    """Whose numbers are followed, along which axis."""

    heads: list[str] = option(..., "An entity's id or name. Repeatable; each gets a panel of its own.", "--head")
    relation: str = option(..., "The relation whose numbers are followed.")
    over: str | None = option(None, "The qualifier that is the axis; by default the date most facts carry.")
    qualifiers: list[str] | None = option(
        None, "Which series, where there are several. Repeatable.", "--qualifier", metavar="R=V"
    )
    start: str | None = option(None, "Where the axis starts; by default at the first value.", "--from")
    end: str | None = option(None, "Where the axis ends; by default at the last value.", "--to")
    points: int = option(100, "How many points a curve has.")
    level: LevelOption = 0.9


def trends(
    run: RunArgument,
    options: TrendOptions,
    out: list[Path] = option(..., "A .png or .svg picture, or a .csv table. Repeatable.", metavar="FILE"),
    *,
    asked: AskedRunOptions,
    output: Output,
) -> None:
    """Draw what RUN says about a number over time, beside what the graph knows."""
    from hynt.asking.question import pair_from_text
    from hynt.front.publishing import check_drawing, draw

    check_drawing(out, with_table=True)
    opened = asked.opened(run, asked.device)
    pairs = [pair_from_text(text, opened.names) for text in options.qualifiers or ()]
    found = opened.trends(**said(options) | {"qualifiers": pairs})
    draw(found, *out)
    result = {"run": str(run), **opened.described(), "out": [str(path) for path in out], **found.to_dict()}
    output.deliver(result, lambda console: _print_trend(console, found, out))


def _print_trend(console: Console, found: Trend, out: list[Path]) -> None:
    console.print(visible(found.title), style="bold")
    columns = ("head", "trained on", "mean error", "held out", "mean error", f"inside {found.level:.0%} interval")
    rows = [
        (
            one.name,
            str(int(one.trained_on.sum())),
            _mean_error(found, one, trained_on=True),
            str(int((~one.trained_on).sum())),
            _mean_error(found, one, trained_on=False),
            f"{one.covered[0]} of {one.covered[1]}" if one.covered and one.covered[1] else "-",
        )
        for one in found.series
    ]
    print_table(console, columns, rows)
    for one in found.series:
        for note in one.notes:
            console.print(f"note: {visible(one.name)}: {visible(note)}", style="dim")
    for note in found.notes:
        console.print(f"note: {visible(note)}", style="dim")
    console.print(f"written: {', '.join(str(path) for path in out)}")


def _mean_error(found: Trend, one: Series, *, trained_on: bool) -> str:
    """To three digits: an error is an estimate."""
    error = one.mean_error(trained_on=trained_on)
    if error is None:
        return "-"
    from hynt.graph.sentences import format_difference

    return format_difference(error, found.unit)


def similar(
    run: RunArgument,
    entity: str = argument(..., "An entity's id or name.", metavar="ENTITY"),
    top: int = option(10, "How many to show.", min=1),
    *,
    asked: GraphOptions,
    output: SavedOutput,
) -> None:
    """List the entities whose vectors point most nearly the same way as ENTITY's (cosine)."""
    opened = asked.opened(run)
    found = [other.to_dict() for other in opened.similar(entity, top)]
    identity = opened.names.entity(entity)
    one = opened.graph.entities[identity]
    named = {"id": one.name, "name": opened.graph.entity_labels[identity], "type": one.type}
    result = {"run": str(run), "entity": named, "similar": found}
    output.deliver(result, lambda console: _print_similar(console, result))


def _print_similar(console: Console, result: dict[str, Any]) -> None:
    console.print(f"most like {visible(result['entity']['name'])}", style="bold")
    names = [other["name"] for other in result["similar"]]
    ids = ("id",) if len(set(names)) < len(names) else ()  # where names do not tell entities apart
    rows = [
        (str(one["rank"]), one["name"], *(one["id"] for _ in ids), one["type"] or "-", f"{one['similarity']:.4f}")
        for one in result["similar"]
    ]
    print_table(console, ("rank", "entity", *ids, "type", "cosine"), rows)


def embeddings(
    run: RunArgument,
    out: Path = option(..., "The Parquet file to write.", metavar="FILE"),
    *,
    asked: GraphOptions,
    output: Output,
) -> None:
    """Write id, name, type and vector of every entity of RUN's graph."""
    entities, width = asked.opened(run).embeddings(out).shape
    result = {"run": str(run), "out": str(out), "entities": entities, "width": width}
    told = f"{entities:,} vectors of {width} numbers in {out}"
    output.deliver(result, lambda console: console.print(told))
