"""An answer taken elsewhere: as Python and curl to ask it again, as JSON and CSV to keep it. Questions by the file."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from hynt.service.front import Front
from hynt.service.http.problems import HttpProblem
from hynt.service.pages.questions import AskedForm
from hynt.service.pages.rendering import page
from hynt.service.pages.trends import TrendForm

router = APIRouter(include_in_schema=False)


def snippets(base: str, verb: str, body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How a program asks the same: (language, text). What is as usual is left out."""
    said = {key: value for key, value in body.items() if value not in (None, [], "") and (key, value) != ("top", 10)}
    said.pop("level", None)
    line = json.dumps(said, ensure_ascii=False)
    command = f"curl -s {shlex.quote(f'{base}/v1/{verb}')} -H 'Content-Type: application/json' -d {shlex.quote(line)}"
    pairs = [(one["relation"], one["value"]) for one in said.pop("qualifiers", ())]
    own = [said.pop(name) for name in ("heads", "head", "relation", "tail") if name in said]
    given = [repr(one) for one in own]
    given += [f"{'' if verb == 'predict' else 'qualifiers='}{pairs!r}"] if pairs else []
    given += [f"{name}={value!r}" for name, value in said.items()]
    python = f"import hynt\n\nclient = hynt.Client({base!r})\nfound = client.{verb}({', '.join(given)})\nprint(found)"
    return [("Python", python), ("curl", command)]


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows with the same columns; what is a list becomes words, what is missing stays empty."""
    written, out = list(rows), io.StringIO()
    if not written:
        return ""
    writer = csv.DictWriter(out, list(written[0]), lineterminator="\n")
    writer.writeheader()
    for row in written:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return "; ".join(str(one["text"] if isinstance(one, dict) and "text" in one else one) for one in value)
    return "" if value is None else value


def _kept(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], kind: str, name: str) -> Response:
    body = json.dumps(found, ensure_ascii=False, indent=2) if kind == "json" else csv_text(rows)
    media = "application/json" if kind == "json" else "text/csv; charset=utf-8"
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(body.encode("utf-8", "backslashreplace"), 200, headers, media)


@router.get("/ask.{kind}")
async def answers(request: Request, kind: str) -> Response:
    """The answers of /ask at the same address, to keep."""
    _check(kind)
    form = AskedForm.read(request.query_params.multi_items())
    found = await _front(request).predict(form.filled.question)
    return _kept(found, found["answers"], kind, "answers")


@router.get("/trends.{kind}")
async def trend(request: Request, kind: str) -> Response:
    """The values of /trends at the same address, to keep."""
    _check(kind)
    found = await _front(request).trends(**TrendForm.read(request.query_params.multi_items()).asked)
    return _kept(found, found["rows"], kind, "trend")


@router.get("/bulk")
async def bulk(request: Request) -> Response:
    """Many questions from a file: the browser reads it and asks them by and by."""
    return page(request, "bulk.html")


def _check(kind: str) -> None:
    if kind not in ("json", "csv"):
        raise HttpProblem(404, "there is nothing at this address.")


def _front(request: Request) -> Front:
    front: Front = request.app.state.front
    return front
