"""Bodies, read with suspicion: shallow, unambiguous, finite, real Unicode. Anything else is refused before use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from hynt.service.http.problems import Fault, Problem, invalid
from hynt.service.settings import NESTING

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', flags=re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


class Refused(HTTPException):
    """Carries a `Problem` through FastAPI's reading of a body, which lets nothing else pass."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status, problem.detail)
        self.problem = problem


def parse(body: bytes) -> Any:
    """The value of a JSON text; a `Problem` that says what is wrong with it."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(f"the body is not UTF-8: byte {error.start + 1} is wrong.") from None
    if depth(text) > NESTING:
        raise invalid([Fault(f"the body nests deeper than {NESTING} levels.", "#")])
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _malformed(f"the body is no JSON: {error.msg}, at line {error.lineno}, column {error.colno}.") from None
    except UnicodeEncodeError:
        raise _malformed("the body has half a character (a lone surrogate).") from None
    except (ValueError, RecursionError):  # a whole number of thousands of digits, for one
        raise _malformed("the body holds a number or a structure that cannot be read.") from None
    return value


def depth(text: str) -> int:
    """How deep brackets nest outside of quotes, counted without building anything."""
    deepest = level = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


class StrictRoute(APIRoute):
    """A route whose body must be JSON, said to be JSON, and read by `parse`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            if request.method == "POST" and not _is_json(request.headers.get("content-type", "")):
                raise Problem(
                    415, "the body must be JSON, and say so.", [Fault("send Content-Type: application/json.")]
                )
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return parse(await self.body())
        except Problem as problem:
            raise Refused(problem) from None


def _is_json(content_type: str) -> bool:
    kind, _, options = content_type.partition(";")
    charset = options.strip().lower()
    return kind.strip().lower() == "application/json" and charset in ("", "charset=utf-8", 'charset="utf-8"')


def _malformed(detail: str) -> Problem:
    return Problem(400, detail, [Fault(detail, "#")])


def _no_constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is no JSON number.")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _malformed("an object of the body names a field twice.")
    return found
