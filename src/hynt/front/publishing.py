"""What others get to see: pictures of results, the page about a run, its scoring model for programs that have no torch,
and whole runs given away and taken.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.asking.predictor import Predictor
from hynt.errors import UsageError, located
from hynt.files import check_new_folder, check_place, write_whole
from hynt.front.jobs import Watching, watched
from hynt.front.recorded_run import RecordedRun
from hynt.names import advice_on
from hynt.results import csv_text

if TYPE_CHECKING:
    from hynt.explanation.explanations import Explanation
    from hynt.front.run import Run
    from hynt.graph.entity_facts import EntityFacts
    from hynt.reporting.report.page import Report
    from hynt.trends.trends import Trend

TABLE = ".csv"


def draw(found: Trend | Explanation | EntityFacts, *out: str | os.PathLike[str]) -> None:
    """Draws a trend, an explanation or the facts around an entity to one or more files, .png or .svg; facts to .pdf as
    well. For a trend, a file that ends in .csv gets the table.

    >>> hynt.draw(run.trends("Brazil", "total fertility rate", points=5), "brazil.svg", "brazil.csv")
    >>> hynt.draw(run.explain("Japan", "capital", "?"), "why.png")
    >>> hynt.draw(graph["Japan"], "japan.svg")
    """
    from hynt.graph.entity_facts import EntityFacts
    from hynt.trends.trends import Trend

    paths = [Path(one) for one in out]
    check_drawing(paths, with_table=isinstance(found, Trend), of_facts=isinstance(found, EntityFacts))
    if isinstance(found, EntityFacts):
        _draw_facts(found, paths)
        return
    made = [(path, _content(found, path.suffix.lower())) for path in paths]  # all are made before one is written
    for path, content in made:
        write_whole(path, content)


def check_drawing(
    out: Sequence[Path], *, with_table: bool = False, of_facts: bool = False, argument: str = "out"
) -> None:
    """Refuses what cannot be drawn, or not there, before any work is done."""
    from hynt.reporting import neighbourhood
    from hynt.reporting.scales import SUFFIXES, check_drawable, suffix_of

    drawn = neighbourhood.SUFFIXES if of_facts else SUFFIXES
    for path in out:
        if suffix_of(path, (*drawn, TABLE) if with_table else drawn, argument) != TABLE:
            check_drawable(argument)
        check_place(path, argument)


def _draw_facts(found: EntityFacts, paths: Sequence[Path]) -> None:
    """Of many facts, as many as a picture holds."""
    from hynt.graph.entity_facts import facts_of
    from hynt.reporting.neighbourhood import PICTURED_FACTS, draw_neighbourhood

    few = facts_of(found.graph, found.entity, limit=PICTURED_FACTS, positions=tuple(found.counts))
    for path in paths:
        draw_neighbourhood(found.graph, few, path)


def _content(found: Trend | Explanation, suffix: str) -> bytes:
    from hynt.explanation.explanations import Explanation
    from hynt.reporting.scales import picture

    if isinstance(found, Explanation):
        from hynt.reporting.explanation_chart import explanation_figure

        return picture(explanation_figure(found), suffix)
    if suffix == TABLE:
        return csv_text(found.rows()).encode("utf-8", "backslashreplace")
    from hynt.reporting.trend_chart import trend_figure

    return picture(trend_figure(found), suffix)


REPORTED_SPLITS = ("valid", "test")


EXPORT_FORMATS = ("onnx",)


def push(
    run: Run | str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    evaluation: str | os.PathLike[str] | None = None,
    licence: str = "",
    version: int | None = None,
    overwrite: bool = False,
    public: bool = False,
) -> dict[str, Any]:
    """Publishes a finished run, with a model card made from it, to a folder or to "hf:owner/name" on the hub.

    `evaluation` is a file that `hynt evaluate --save` wrote; `licence` is the model's, else the graph's. The updates of
    its graph go with it; `version` gives the run as it was after so many of them. Weights are safetensors; nothing is
    a pickle.

    >>> told = hynt.push(run, "given")
    >>> told["graph_included"], "README.md" in told["files"]
    (True, True)
    """
    from hynt.runs.place import whole_run
    from hynt.sharing.push_and_pull import push as give

    path = Path(run) if isinstance(run, (str, os.PathLike)) else run.path
    if version is None and not isinstance(run, (str, os.PathLike)):
        version = run.version
    with whole_run():
        return give(
            path,
            os.fspath(destination),
            evaluation=None if evaluation is None else Path(evaluation),
            licence=licence,
            version=version,
            overwrite=overwrite,
            private=not public,
        )


def pull(source: str | os.PathLike[str], out: str | os.PathLike[str], device: str = "auto") -> Run:
    """Fetches a published run from a folder or from "hf:owner/name" on the hub. The hash of each file is checked first;
    files that do not belong to a run are left out.

    >>> _ = hynt.push(run, "given")
    >>> hynt.pull("given", "taken").predict("Japan", "capital", "?").kind
    'entity'
    """
    from hynt.front.run import Run

    pulled(source, out)
    return Run(out, device)


def pulled(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> dict[str, Any]:
    """The same, with what came of each file."""
    from hynt.sharing.push_and_pull import pull as take

    check_new_folder(Path(out), "OUT")
    return take(os.fspath(source), Path(out))


class Publishable(RecordedRun):
    """A run that is shown and handed on."""

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        split: str = "test",
        *,
        entity: str | None = None,
        again: bool = False,
        progress: Watching = None,
    ) -> Report:
        """Writes one self-contained page to `out` that says what the run is and how far it can be trusted. Figures that
        were measured before are used again unless `again`. `entity` is the one whose facts are drawn.

        >>> made = run.report("report.html", "valid")
        >>> made.sections[0], made.page.startswith("<!doctype html>")
        ('metrics', True)
        """
        trained = self._as_trained("report")
        if split not in REPORTED_SPLITS:
            raise UsageError(
                f"no report is made of {split!r}.", where="split", advice=f"Choose {' or '.join(REPORTED_SPLITS)}."
            )
        if out is not None and Path(out).suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{Path(out).name} is not a page.", where="out", advice="Give a file that ends in .html.")
        if out is not None:
            check_place(Path(out), "out")
        trained.graph.split(split)
        with located("entity"):
            drawn = None if entity is None else trained.names.entity(entity)

        from hynt.reporting.report.page import make_report
        from hynt.runs.place import whole_run

        _ = trained.loaded
        with whole_run(), watched(progress) as shown:
            asking = shown.counting("evaluating")
            made = make_report(trained, split, entity=drawn, again=again, asking=asking, note=trained.note)
        if out is not None:
            write_whole(Path(out), made.page.encode("utf-8", "backslashreplace"))
        return made

    def export(
        self,
        out: str | os.PathLike[str],
        format: Literal["onnx"] = "onnx",  # noqa: A002 - the word users know it by
        *,
        qualifiers: int | None = None,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Writes the scoring model for programs without torch, after comparing its answers with those of torch.
        `qualifiers` is the most that a fact may have, by default as in the graph.

        >>> run.export("model.onnx", qualifiers=2)["qualifiers"]
        2
        """
        trained, path = self._as_trained("export"), Path(out)
        if format not in EXPORT_FORMATS:
            raise UsageError(
                f"a run cannot be exported as {format!r}.", where="format", advice=advice_on(format, EXPORT_FORMATS)
            )
        check_place(path, "out")
        if path.exists() and not overwrite:
            raise UsageError(f"{path} exists already.", where="out", advice="Say --overwrite to replace it.")
        from hynt.exporting import export_onnx

        loaded = trained.loaded if trained.device.type == "cpu" else Predictor(trained.saved, "cpu").loaded
        if not loaded.run.is_finished:
            advice = f"Go on: hynt train GRAPH --out {trained.path} --resume."
            raise UsageError("the run is not finished.", where=str(trained.path), advice=advice)
        return {"run": str(trained.path), **export_onnx(loaded, path, qualifiers)}
