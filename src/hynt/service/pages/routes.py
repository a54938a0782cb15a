"""The pages: search, ask, trends, doubtful facts, about. Rendered here, so that they work without scripts; scripts only
make them quicker to use. Each page asks the same front as the JSON endpoints do.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from hynt.errors import HyntError
from hynt.graph.lookup import Position
from hynt.service.front import Front
from hynt.service.http.problems import Problem
from hynt.service.pages.about import described, figures, measured_of, validated_of
from hynt.service.pages.answers import answered, told
from hynt.service.pages.doubtful import KINDS, PAGE, Doubtful, audit_path
from hynt.service.pages.examples import beginnings
from hynt.service.pages.facts import groups_of
from hynt.service.pages.questions import TOPS, AskedForm, address, changed
from hynt.service.pages.rendering import page, problem_page, stylesheet
from hynt.service.pages.trends import MOST_HEADS, POINTS, heads_of, panels, told_fault
from hynt.service.settings import TEXT

FOUND = 20
FACTS = 50
ALIKE = 8
PATIENCE = 1.0
"""Seconds that facts wait for what the model adds to them."""

Text = Annotated[str, Query(max_length=TEXT)]
Offset = Annotated[int, Query(ge=0, le=10**9)]

router = APIRouter(include_in_schema=False)


def _front(request: Request) -> Front:
    front: Front = request.app.state.front
    return front


async def _beginnings(request: Request) -> dict[str, Any]:
    """Made once for each service, away from the loop that answers everybody."""
    state = request.app.state
    if not hasattr(state, "beginnings"):
        state.beginnings = await asyncio.to_thread(beginnings, _front(request).graph)
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


@router.get("/")
async def home(request: Request, query: Text = "") -> Response:
    """Search, or what to begin with."""
    if not query.strip():
        return page(request, "home.html", **await _beginnings(request))
    found = await _front(request).entities(query.strip(), FOUND)
    return page(request, "search.html", found=found, header_query=query, **await _beginnings(request))


@router.get("/entity")
async def entity(request: Request, id: Text = "", offset: Offset = 0, position: Position | None = None) -> Response:  # noqa: A002
    """An entity's facts, readable."""
    if not id:
        return RedirectResponse("/", 303)
    try:
        found = await _front(request).entity(id, offset, FACTS, position)
    except Problem as problem:
        near = (await _front(request).entities(id, 6))["entities"]
        return problem_page(request, problem, title="Nothing is known by that name", near=near, header_query=id)

    alike = await _alike(_front(request), found["entity"]["id"])

    def at(offset: int, position: str | None) -> str:
        return address("/entity", [("id", id), ("position", position), ("offset", offset or None)])

    return page(
        request,
        "entity.html",
        found=found,
        groups=groups_of(found["facts"], found["entity"]["id"]),
        position=position,
        offset=offset,
        limit=FACTS,
        at=at,
        alike=alike,
    )


async def _alike(front: Front, entity: str) -> list[dict[str, Any]]:
    """Entities that the model sees as most alike; none where it is not there, too busy, or keeps no vectors."""
    if not front.engine.state.ready:
        return []
    try:
        async with asyncio.timeout(PATIENCE):
            found: list[dict[str, Any]] = (await front.similar(entity, ALIKE))["similar"]
            return found
    except (Problem, TimeoutError):
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
async def trends(request: Request, relation: Text = "", over: Text = "") -> Response:
    """A number of one or several heads over time."""
    given = request.query_params.multi_items()
    heads, pairs = heads_of(given), AskedForm.read(given).filled.qualifiers
    left_out, heads = heads[MOST_HEADS:], heads[:MOST_HEADS]
    asked = {"heads": heads, "relation": relation.strip(), "over": over.strip(), "qualifiers": pairs}
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
            points=POINTS,
            qualifiers=[{"relation": name, "value": value} for name, value in pairs],
        )
    except Problem as problem:
        if problem.status != 422:
            return problem_page(request, problem)
        faults = [await told_fault(_front(request), asked, fault) for fault in problem.faults]
        wrong = {fault["place"]: fault for fault in faults}
        return page(request, "trends.html", **{**content, "faults": faults, "wrong": wrong})
    return page(request, "trends.html", **{**content, "found": found, "panels": panels(found)})


@router.get("/doubtful")
async def doubtful(request: Request, kind: Text = "", offset: Offset = 0) -> Response:
    """Facts that an audit found doubtful, if there is one of the run."""
    settings, state = _front(request).settings, request.app.state
    path = audit_path(settings.run, settings.audit)
    if path is None:
        return page(
            request, "doubtful.html", found=None, run=settings.run.name, kinds=KINDS, kind="", offset=0, limit=PAGE
        )
    try:
        if not hasattr(state, "doubtful"):
            state.doubtful = await asyncio.to_thread(Doubtful, path)
        chosen = kind if kind in KINDS else None
        found = await asyncio.to_thread(state.doubtful.page, chosen, offset)
    except HyntError as problem:
        return problem_page(request, Problem(500, f"{problem.what} {problem.advice}"))
    return page(
        request,
        "doubtful.html",
        found=found,
        run=settings.run.name,
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
        run=front.settings.run.name,
        validated=validated,
        figures=figures(measured) if measured is not None else None,
    )
