"""The pages: search, relations, ask, trends, doubtful facts, about. Rendered here, so that they work without scripts;
scripts only make them quicker to use. Each page asks the same front as the JSON endpoints do.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from hynt.errors import HyntError
from hynt.files import MANIFEST_NAME, read_index
from hynt.graph.lookup import EntityPosition
from hynt.markup import Column, Markup, Row, RowGroup, joined, table
from hynt.reporting.report.metrics import METRICS, SCOPES, TITLES, WORDS, headlines, metrics_section
from hynt.reporting.report.trust import Measurements, kept_measurements, protocol_section, trust_section
from hynt.service.front import Front
from hynt.service.http.problems import HttpProblem
from hynt.service.pages.answers import answered, told
from hynt.service.pages.doubtful import KINDS, PAGE, Doubtful, audit_path
from hynt.service.pages.examples import beginnings, groups_of
from hynt.service.pages.questions import TOPS, AskedForm, address, changed
from hynt.service.pages.relations import quality_of, question_about, relation_chart
from hynt.service.pages.rendering import page, problem_page, stylesheet
from hynt.service.pages.trends import MOST_HEADS, POINTS, explained_fault, heads_of, panels
from hynt.service.settings import TEXT

# About the run: its figures and the protocol they were measured by, as the report shows them.

SPLITS = ("test", "valid")
_WEIGHTS, _READS, _RECORD = "weights.safetensors", "reads.json", "metrics.jsonl"
"""As `hynt.runs.run_folder` names them, which needs torch."""


def measured_of(run: Path) -> tuple[Measurements | None, str]:
    """The figures kept in a run, those of test before those of valid, and why there are none where there are none."""
    try:
        weights = read_index(run / MANIFEST_NAME).get("files", {}).get(_WEIGHTS)
        for split in SPLITS:
            found = kept_measurements(run, split, weights)
            if found is not None:
                return {**found, "reads_now": int(read_index(run / _READS).get(split, 0))}, ""
    except HyntError as problem:
        return None, f"The figures of this run cannot be shown: {problem.what}"
    return None, "The run was not measured in full yet. One command does it and keeps the figures in the run:"


def validated_of(run: Path) -> dict[str, Any] | None:
    """What the run's weights reached on the validation split while it was trained; None where nothing was written."""
    try:
        lines = [json.loads(line) for line in (run / _RECORD).read_text(encoding="utf-8").splitlines()]
        validations = [line for line in lines if line.get("validation")]
        if not validations:
            return None
        chosen = next((line for line in reversed(validations) if line.get("best")), validations[-1])
        tables = [_task_table(task, found) for task, found in chosen["validation"].items() if task in METRICS]
        return {"epoch": int(chosen["epoch"]), "tables": joined(tables)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # a damaged record costs the page this part; `hynt report` says what is wrong with it


def _task_table(task: str, found: dict[str, Any]) -> Markup:
    metrics = [one for one in METRICS[task] if one in found["triplet"]]  # records of earlier versions have fewer
    columns = [Column(TITLES[task]), *(Column(WORDS[one], "number") for one in metrics), Column("asked", "number")]
    rows = [
        Row([title, *(f"{found[scope][one]:.4f}" for one in metrics), f"{found[scope]['count']:,}"])
        for scope, title in SCOPES.items()
        if found[scope]["count"]
    ]
    return table(f"{TITLES[task]} of the validation split", columns, [RowGroup("", rows)], hide_caption=True)


def figures(found: Measurements) -> dict[str, Markup]:
    """The parts of the report that say how good the run is."""
    return {
        "headlines": headlines(found),
        "metrics": metrics_section(found),
        "trust": trust_section(found),
        "protocol": protocol_section(found),
    }


def described(about: dict[str, Any]) -> list[tuple[str, str]]:
    """The run and its graph in a few words each."""
    run, graph = about["run"], about["graph"]
    pairs = [
        ("model", str(run.get("model", "not loaded yet"))),
        ("graph", graph["name"] or "without a name"),
        ("entities", f"{graph['entities']:,}"),
        ("relations", f"{graph['relations']:,}"),
        *((f"facts in {name}", f"{count:,}") for name, count in graph["splits"].items()),
    ]
    named = {"trained_on": "trained on", "scaled_on": "numbers scaled on", "seed": "seed", "epoch": "epoch"}
    pairs += [(word, str(run[key])) for key, word in named.items() if key in run]
    return [*pairs, ("hynt", about["hynt"])]


FOUND = 20
FACTS = 50
ALIKE = 8
PATIENCE = 1.0
"""Seconds that facts wait for what the model adds to them."""

TextQuery = Annotated[str, Query(max_length=TEXT)]
Offset = Annotated[int, Query(ge=0, le=10**9)]

router = APIRouter(include_in_schema=False)


def _front(request: Request) -> Front:
    front: Front = request.app.state.front
    return front


async def _beginnings(request: Request) -> dict[str, Any]:
    """Made once for each service, away from the loop that answers everybody."""
    state, front = request.app.state, _front(request)
    best = tuple(front.engine.state.examples)  # known once the model is loaded
    if getattr(state, "beginnings_of", None) != best:
        state.beginnings = await asyncio.to_thread(beginnings, front.graph, best)
        state.beginnings_of = best
    found: dict[str, Any] = state.beginnings
    return found


@router.get("/style.css")
async def style() -> Response:
    """What all pages look like; its address has a digest of it, so browsers may keep it."""
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(stylesheet(), media_type="text/css; charset=utf-8", headers=headers)


@router.get("/state")
async def state(request: Request) -> JSONResponse:
    """For pages that wait until the model is loaded."""
    now = _front(request).engine.state
    return JSONResponse({"ready": now.ready, "reason": now.reason})


@router.get("/suggested")
async def suggested(
    request: Request,
    wanted: Literal["head", "relation", "tail", "qualifier", "value"],
    head: TextQuery = "",
    relation: TextQuery = "",
) -> JSONResponse:
    """For fields that have the focus and nothing in them yet."""
    return JSONResponse(await _front(request).suggested(wanted, head.strip(), relation.strip()))


@router.get("/")
async def home(request: Request, query: TextQuery = "") -> Response:
    """Search, or what to begin with."""
    if not query.strip():
        return page(request, "home.html", **await _beginnings(request))
    found = await _front(request).entities(query.strip(), FOUND)
    return page(request, "search.html", found=found, header_query=query, **await _beginnings(request))


@router.get("/entity")
async def entity(
    request: Request,
    id: TextQuery = "",  # noqa: A002
    offset: Offset = 0,
    position: EntityPosition | None = None,
) -> Response:
    """The page of an entity: its facts in words, and questions about them."""
    if not id:
        return RedirectResponse("/", 303)
    try:
        found = await _front(request).entity(id, offset, FACTS, position)
    except HttpProblem as problem:
        near = (await _front(request).entities(id, 6))["entities"]
        return problem_page(request, problem, title="Nothing is known by that name", near=near, header_query=id)

    alike = await _alike(_front(request), found["entity"]["id"])

    def at(offset: int, position: str | None) -> str:
        return address("/entity", [("id", id), ("position", position), ("offset", offset or None)])

    return page(
        request,
        "entity.html",
        found=found,
        groups=groups_of(found["facts"], found["entity"]["id"], set(found["series"])),
        position=position,
        offset=offset,
        limit=FACTS,
        at=at,
        alike=alike,
    )


@router.get("/relations")
async def relations(request: Request, query: TextQuery = "", offset: Offset = 0) -> Response:
    """All relations, those with the most facts first."""
    found = await _front(request).relations(query.strip(), None, offset, FACTS)
    return page(
        request,
        "relations.html",
        found=found,
        query=query.strip(),
        offset=offset,
        limit=FACTS,
        at=lambda offset, query: address("/relations", [("query", query), ("offset", offset or None)]),
    )


@router.get("/relation")
async def relation(request: Request, id: TextQuery = "") -> Response:  # noqa: A002
    """The page of a relation: what it holds, what usually stands beside it, and how well it is predicted."""
    if not id:
        return RedirectResponse("/relations", 303)
    front = _front(request)
    try:
        found = await front.relation_in_use(id)
    except HttpProblem as problem:
        return problem_page(request, problem, title="No relation is called that")
    measured, _ = await asyncio.to_thread(measured_of, front.settings.run)
    return page(
        request,
        "relation.html",
        found=found,
        chart=relation_chart(found),
        quality=quality_of(measured, found["id"]),
        examples=[{"text": fact["text"], "address": question_about(fact).address} for fact in found["examples"]],
    )


async def _alike(front: Front, entity: str) -> list[dict[str, Any]]:
    """Entities that the model sees as most alike; none where it is not there, too busy, or keeps no vectors."""
    if not front.engine.state.ready:
        return []
    try:
        async with asyncio.timeout(PATIENCE):
            found: list[dict[str, Any]] = (await front.similar(entity, ALIKE))["similar"]
            return found
    except (HttpProblem, TimeoutError):
        return []


@router.get("/ask")
async def ask(request: Request) -> Response:
    """Build a fact with a blank, and see the answers."""
    given = request.query_params.multi_items()
    form = AskedForm.read(given)
    new = changed(form, request.query_params)
    if new is not None:
        return RedirectResponse(new.address, 303)
    result = await answered(_front(request), form)
    failed = result.get("problem")
    status = failed.status if failed is not None else 200
    wrong = {fault["place"]: fault for fault in result.get("faults", ())}
    return page(
        request,
        "ask.html",
        status,
        form=form,
        result=result,
        told=told(result),
        wrong=wrong,
        tops=TOPS,
        **await _beginnings(request),
    )


@router.get("/trends")
async def trends(
    request: Request, relation: TextQuery = "", over: TextQuery = "", start: TextQuery = "", end: TextQuery = ""
) -> Response:
    """A number of one or several heads over time."""
    given = request.query_params.multi_items()
    heads, pairs = heads_of(given), AskedForm.read(given).filled.qualifiers
    left_out, heads = heads[MOST_HEADS:], heads[:MOST_HEADS]
    asked = {
        "heads": heads,
        "relation": relation.strip(),
        "over": over.strip(),
        "start": start.strip(),
        "end": end.strip(),
        "qualifiers": pairs,
    }
    content: dict[str, Any] = {
        "asked": asked,
        "panels": [],
        "found": None,
        "faults": [],
        "wrong": {},
        "left_out": left_out,
        **await _beginnings(request),
    }
    if not heads or not asked["relation"]:
        return page(request, "trends.html", **content)
    try:
        found = await _front(request).trends(
            heads,
            relation.strip(),
            over=over.strip() or None,
            start=start.strip() or None,
            end=end.strip() or None,
            points=POINTS,
            qualifiers=[{"relation": name, "value": value} for name, value in pairs],
        )
    except HttpProblem as problem:
        if problem.status != 422:
            return problem_page(request, problem)
        faults = [await explained_fault(_front(request), asked, fault) for fault in problem.faults]
        wrong = {fault["place"]: fault for fault in faults}
        return page(request, "trends.html", **{**content, "faults": faults, "wrong": wrong})
    return page(request, "trends.html", **{**content, "found": found, "panels": panels(found)})


@router.get("/doubtful")
async def doubtful(request: Request, kind: TextQuery = "", offset: Offset = 0) -> Response:
    """Facts that an audit found doubtful, if there is one of the run."""
    settings, state = _front(request).settings, request.app.state
    path = audit_path(settings.run, settings.audit)
    if path is None:
        return page(
            request,
            "doubtful.html",
            found=None,
            run=shlex.quote(str(settings.run)),
            kinds=KINDS,
            kind="",
            offset=0,
            limit=PAGE,
        )
    try:
        if not hasattr(state, "doubtful"):
            state.doubtful = await asyncio.to_thread(Doubtful, path)
        chosen = kind if kind in KINDS else None
        found = await asyncio.to_thread(state.doubtful.page, chosen, offset)
    except HyntError as problem:
        return problem_page(request, HttpProblem(500, problem.sentences))
    return page(
        request,
        "doubtful.html",
        found=found,
        run=shlex.quote(str(settings.run)),
        kinds=KINDS,
        kind=chosen or "",
        offset=offset,
        limit=PAGE,
        at=lambda offset, kind: address("/doubtful", [("kind", kind), ("offset", offset or None)]),
    )


@router.get("/about")
async def about(request: Request) -> Response:
    """The run's figures and how they were measured."""
    front = _front(request)
    measured, why = await asyncio.to_thread(measured_of, front.settings.run)
    validated = await asyncio.to_thread(validated_of, front.settings.run) if measured is None else None
    told = await front.about()
    return page(
        request,
        "about.html",
        about=told,
        described=described(told),
        why=why,
        run=shlex.quote(str(front.settings.run)),
        validated=validated,
        figures=figures(measured) if measured is not None else None,
    )
