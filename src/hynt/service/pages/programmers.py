"""For programs: the page of every endpoint of the OpenAPI description, each with a form to try it; and an answer taken
elsewhere, as Python and curl to ask it again, as JSON and CSV to keep it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Request, Response

from hynt.results import csv_text
from hynt.service.http.problems import HttpProblem
from hynt.service.pages.questions import AskedForm
from hynt.service.pages.trends import TrendForm
from hynt.service.served_run import served_by

_FEW = 2


def endpoints_of(
    described: Mapping[str, Any], begun: Mapping[str, Any], name: Callable[..., str]
) -> list[dict[str, Any]]:
    """What there is to ask, in groups: [{"title", "endpoints": […]}]. Fields hold examples of the graph itself, from
    the questions that its pages begin with; `name` gives the name of an id.
    """
    own = _own_examples(begun, name)
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            shown = _endpoint(path, method.upper(), said, described, own)
            groups.setdefault(said.get("tags", ["other"])[0], []).append(shown)
    return [{"title": title, "endpoints": listed} for title, listed in groups.items()]


def _endpoint(
    path: str, method: str, said: Mapping[str, Any], described: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    fields = [_field(one, path, own) for one in said.get("parameters", ())]
    return {
        "method": method,
        "path": path,
        "identity": f"{method.lower()}{''.join(sign if sign.isalnum() else '-' for sign in path)}",
        "summary": said.get("summary", ""),
        "told": said.get("description", ""),
        "fields": [one for one in fields if one is not None],
        "body": _body(path, said, described, own),
        "refusals": [(status, one["description"]) for status, one in said["responses"].items() if status != "200"],
    }


def _field(one: Mapping[str, Any], path: str, own: Mapping[str, Any]) -> dict[str, Any] | None:
    schema = one.get("schema", {})
    name = str(one["name"])
    if one["in"] not in ("query", "path"):
        return None
    key = "relation" if name == "identity" and "relations" in path else {"identity": "entity"}.get(name, name)
    value = own.get(key) if one.get("required") or name == "query" else None
    listed = schema.get("enum") or next((part["enum"] for part in schema.get("anyOf", ()) if "enum" in part), None)
    return {
        "name": name,
        "place": one["in"],
        "required": bool(one.get("required")),
        "value": value if value is not None else schema.get("default", ""),
        "listed": listed,
    }


def _body(path: str, said: Mapping[str, Any], described: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    if "requestBody" not in said:
        return ""
    if path in own:
        return json.dumps(own[path], ensure_ascii=False, indent=2)
    schema = said["requestBody"]["content"]["application/json"]["schema"]
    name = schema.get("$ref", "").rpartition("/")[2]
    examples = described["components"]["schemas"].get(name, schema).get("examples") or [{}]
    return json.dumps(examples[0], ensure_ascii=False, indent=2)


def _own_examples(begun: Mapping[str, Any], name: Callable[..., str]) -> dict[str, Any]:
    """Names and bodies of the graph itself, by parameter and by path."""
    found: dict[str, Any] = {}
    if begun["entities"]:
        entity = begun["entities"][0]["name"]
        found |= {"entity": entity, "query": entity[:3]}
    if begun["questions"]:
        form = AskedForm.read(_given(begun["questions"][0])).named(name)
        asked = {key: form.question[key] for key in ("head", "relation", "tail", "qualifiers")}
        found |= {"/v1/predict": asked | {"top": _FEW}, "/v1/explain": asked, "relation": form.relation}
    if begun["trends"]:
        trend = TrendForm.read(_given(begun["trends"][0])).named(name)
        found["/v1/trends"] = {"heads": list(trend.heads), "relation": trend.relation, "points": 5}
    return found


def _given(example: Mapping[str, str]) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(example["address"]).query)


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
    found = await served_by(request).predict(form.filled.question)
    return _kept(found, found["answers"], kind, "answers")


@router.get("/trends.{kind}")
async def trend(request: Request, kind: str) -> Response:
    """The values of /trends at the same address, to keep."""
    _check(kind)
    found = await served_by(request).trends(TrendForm.read(request.query_params.multi_items()).asked)
    return _kept(found, found["rows"], kind, "trend")


def _check(kind: str) -> None:
    if kind not in ("json", "csv"):
        raise HttpProblem(404, "there is nothing at this address.")
