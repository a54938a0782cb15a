"""A served run, asked from Python: the same words and the same answers as a run that is loaded.

client = hynt.Client("http://127.0.0.1:8000")
client.predict("Japan", "capital", "?").to_pandas()

Standard library alone, so that whoever only asks installs nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from hynt.asking.answers import Answers, SimilarEntity
from hynt.asking.question import asked_parts, parts_of
from hynt.errors import HyntError, Meant, UsageError
from hynt.graph.fact import as_pairs

if TYPE_CHECKING:
    from hynt.explanation.explanations import Explanation
    from hynt.graph.fact import Fact
    from hynt.trends.trends import Trend

_TOGETHER, _BYTES = 256, 60_000
"""Questions in one request, and about how long it may be: what a service takes."""


class ServiceProblem(HyntError):
    """What the service refused, or that it cannot be reached. `status` is 0 for the latter."""

    def __init__(self, what: str, *, status: int = 0, retry_after: int = 0, **named: Any) -> None:
        super().__init__(what, **named)
        self.status, self.retry_after = status, retry_after


class Client:
    """Asks a service in the words of `hynt.Run` and gets the same answers. It holds no connection, so threads and
    processes may share it.

    >>> client = hynt.Client(address)
    >>> client.is_ready()
    True
    >>> client.predict("Japan", "capital", "?", top=2) == run.predict("Japan", "capital", "?", top=2)
    True
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise UsageError(f"{url!r} is not an address of a service.", where="url", advice="Say http://HOST:PORT.")
        self.url, self.timeout, self._token = url.rstrip("/"), timeout, token
        # A token is for this service and for nobody it may point to; a proxy would see it too.
        self._opener = build_opener(_NoRedirects, ProxyHandler({}))

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def predict(
        self,
        fact: Fact | Sequence[Any] | Mapping[str, Any] | str | None = None,
        relation: Any = None,
        tail: Any = None,
        qualifiers: Mapping[str, Any] | Sequence[Any] = (),
        *,
        head: Any = None,
        top: int = 10,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = 0.9,
    ) -> Answers:
        """Answers a fact with one "?" in it; takes all that `Run.predict` takes."""
        asked = asked_parts(fact, relation, tail, qualifiers, head)
        return Answers.from_dict(self._post("/v1/predict", _question(asked, top, candidates, level)))

    def predict_many(
        self,
        questions: Iterable[Any],
        *,
        top: int = 10,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = 0.9,
    ) -> list[Answers]:
        """Answers many facts, in their order, in as many requests as that takes."""
        asked = [_question(parts_of(question), top, candidates, level) for question in questions]
        found: list[Answers] = []
        for together in _batches(asked):
            found += map(Answers.from_dict, self._post("/v1/predict", {"questions": together})["results"])
        return found

    def explain(
        self,
        fact: Fact | Sequence[Any] | Mapping[str, Any] | str | None = None,
        relation: Any = None,
        tail: Any = None,
        qualifiers: Mapping[str, Any] | Sequence[Any] = (),
        *,
        head: Any = None,
        answer: str | None = None,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = 0.9,
    ) -> Explanation:
        """What the first answer, or the one named by `answer`, depends on."""
        from hynt.explanation.explanations import Explanation

        asked = _question(asked_parts(fact, relation, tail, qualifiers, head), None, candidates, level)
        return Explanation.from_dict(
            self._post("/v1/explain", asked if answer is None else {**asked, "answer": answer})
        )

    def trends(
        self,
        heads: str | Sequence[str],
        relation: str,
        *,
        over: str | None = None,
        qualifiers: Mapping[str, Any] | Sequence[Any] = (),
        start: Any = None,
        end: Any = None,
        points: int = 100,
        level: float = 0.9,
    ) -> Trend:
        """How a number changes along a qualifier: the date that most facts carry, unless `over` names another."""
        from hynt.trends.trends import Trend

        named = [heads] if isinstance(heads, str) else list(heads)
        asked = {
            "heads": named,
            "relation": relation,
            "qualifiers": _pairs(qualifiers),
            "points": points,
            "level": level,
        }
        ends = {"over": over, "start": _written(start), "end": _written(end)}
        said = {name: value for name, value in ends.items() if value is not None}
        return Trend.from_dict(self._post("/v1/trends", asked | said))

    def similar(self, entity: str, top: int = 10) -> list[SimilarEntity]:
        """The entities with the most similar vectors, by cosine."""
        return [SimilarEntity(**one) for one in self._get("/v1/similar", entity=entity, top=top)["similar"]]

    def entities(self, query: str, limit: int = 10) -> list[dict[str, Any]]:
        """The entities that a text may refer to, best match first."""
        found: list[dict[str, Any]] = self._get("/v1/entities", query=query, limit=limit)["entities"]
        return found

    def entity(self, identity: str, offset: int = 0, limit: int = 50) -> dict[str, Any]:
        """An entity by its id or name, and a page of its facts."""
        return self._get(f"/v1/entities/{quote(identity, safe='')}", offset=offset, limit=limit)

    def relations(self, query: str = "", offset: int = 0, limit: int = 200) -> list[dict[str, Any]]:
        """A page of the relations, those with the most facts first."""
        found: list[dict[str, Any]] = self._get("/v1/relations", query=query, offset=offset, limit=limit)["relations"]
        return found

    def is_ready(self) -> bool:
        """Whether the model is loaded; False if nothing answers."""
        try:
            return bool(self._get("/ready")["ready"])
        except ServiceProblem:
            return False

    # ------------------------------------------------------------------ how

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._sent(Request(f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")))

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            content = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as problem:
            raise UsageError(
                f"the question cannot be sent: {problem}.", advice="Give text and finite numbers; units as '80 kg'."
            ) from None
        return self._sent(Request(self.url + path, content, {"Content-Type": "application/json"}))

    def _sent(self, request: Request) -> dict[str, Any]:
        if self._token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                found = json.loads(response.read())
            if not isinstance(found, dict):
                raise ValueError("no object")
            return found
        except HTTPError as error:
            with error:
                raise _refusal(error, error.read()) from None
        except ValueError:
            raise ServiceProblem(
                "whatever answers here is not a service of hynt.", where=self.url, advice="Is the address right?"
            ) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ServiceProblem(
                f"the service cannot be reached: {reason}.", where=self.url, advice="Is `hynt serve` running there?"
            ) from None


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *given: Any, **named: Any) -> None:  # noqa: ARG002 - urllib's signature
        return None


def _question(parts: Sequence[Any], top: int | None, candidates: Any, level: float) -> dict[str, Any]:
    head, relation, tail, qualifiers = parts
    rules = [candidates] if isinstance(candidates, str) else list(candidates)
    named = [rule for rule in rules if isinstance(rule, str) and rule in ("type", "unknown")]
    only: list[str] = []
    for rule in rules:
        if rule not in ("type", "unknown"):
            only += [rule] if isinstance(rule, str) else list(rule)
    asked = {
        "head": head,
        "relation": relation,
        "tail": _written(tail),
        "qualifiers": _pairs(qualifiers),
        "level": level,
    }
    asked |= {} if top is None else {"top": top}
    return asked | ({"candidates": named} if named else {}) | ({"only": only} if only else {})


def _batches(asked: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    together: list[dict[str, Any]] = []
    size = 0
    for question in asked:
        own = len(json.dumps(question))
        if together and (len(together) == _TOGETHER or size + own > _BYTES):
            yield together
            together, size = [], 0
        together.append(question)
        size += own + 2
    if together:
        yield together


def _pairs(qualifiers: Any) -> list[dict[str, Any]]:
    found = []
    for pair in as_pairs(qualifiers):
        if isinstance(pair, Mapping):
            pair = (pair["relation"], pair["value"])
        found.append({"relation": pair[0], "value": _written(pair[1])})
    return found


def _written(value: Any) -> Any:
    """A number with its unit as text, which is how a service reads one."""
    literal, unit = getattr(value, "literal", None), getattr(value, "unit", "")
    if literal is None:
        return value if isinstance(value, (str, int, float)) or value is None else str(value)
    return f"{literal} {unit}" if unit and unit != "date" else literal


def _refusal(error: HTTPError, body: bytes) -> ServiceProblem:
    try:
        found = json.loads(body)
        first = (found.get("errors") or [{}])[0]
        what = first.get("detail") or found["detail"]
        named = {"where": first.get("pointer") or first.get("parameter") or "", "advice": first.get("advice", "")}
        named |= {name: map(Meant.from_dict, first.get(name, ())) for name in ("namesakes", "nearest")}
    except (ValueError, KeyError, AttributeError, IndexError, TypeError):
        what, named = f"the service answered {error.code} {error.reason}.", {}
    retry_after = error.headers.get("Retry-After", "0")
    return ServiceProblem(
        what, status=error.code, retry_after=int(retry_after) if retry_after.isdigit() else 0, **named
    )
