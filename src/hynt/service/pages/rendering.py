"""Templates to pages: all that comes from data is escaped, all pages have one frame, each failure a page of its own."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hynt import __version__
from hynt.graph.sentences import format_quantity, unit_in_words
from hynt.graph.units.conversion import with_display
from hynt.markup import percent, shown
from hynt.reporting.charts_svg import share_bar
from hynt.reporting.scales import shared_style
from hynt.service.http.problems import HttpProblem
from hynt.service.pages.questions import address
from hynt.service.served_run import served_by
from hynt.service.settings import TARGET_BYTES

STATIC = Path(__file__).parent / "static"
NAVIGATION = (
    ("/", "Search"),
    ("/relations", "Relations"),
    ("/ask", "Ask"),
    ("/trends", "Trends"),
    ("/doubtful", "Doubtful facts"),
    ("/about", "About"),
)

TITLES = {
    404: "There is nothing here",
    422: "That cannot be asked",
    429: "Too many questions at once",
    500: "Something went wrong here",
    503: "The model is not ready",
}


def _quantity(value: float, unit: str, display: str = "") -> str:
    return format_quantity(value, with_display(unit, display))


@cache
def environment() -> Environment:
    """One for all pages. Names that a template does not know are an error, not nothing."""
    made = Environment(
        loader=PackageLoader("hynt.service.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(address=address, share_bar=share_bar, navigation=NAVIGATION, hynt_version=__version__)
    made.globals.update(style=f"/style.css?v={_digest(stylesheet())}", script=script_address)
    made.filters.update(shown=lambda text: shown(str(text)), quantity=_quantity, percent=percent, share=share)
    made.filters["unit"] = lambda unit, display="": unit_in_words(with_display(unit, display))
    made.filters["leads"] = leads_to
    made.filters["code"] = with_code
    made.filters["sentence"] = lambda text: f"{str(text)[:1].upper()}{str(text)[1:]}"
    return made


def with_code(text: str) -> Markup:
    """A docstring's words, with what stands in backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


def leads_to(where: str) -> Markup:
    """The attribute that makes a link; none where the address is longer than the service would take."""
    return Markup(' href="{}"').format(where) if len(where.encode()) <= TARGET_BYTES else Markup("")


@cache
def stylesheet() -> str:
    """The style of all pages: what they share with the report, then what is their own."""
    return shared_style() + (STATIC / "pages.css").read_text(encoding="utf-8")


@cache
def script_address(name: str) -> str:
    """Where a script is found; its content is part of the address, so that browsers may keep it."""
    return f"/static/{name}?v={_digest((STATIC / name).read_text(encoding='utf-8'))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def share(part: float) -> str:
    """A share of what was counted, which may be all of it."""
    return "all" if part == 1 else percent(part)


def page(request: Request, template: str, status: int = 200, **content: Any) -> HTMLResponse:
    """A page in the frame that all have."""
    served = served_by(request)
    text = (
        environment()
        .get_template(template)
        .render(
            path=request.url.path,
            graph_name=served.graph.name or "the graph",
            ready=served.engine.state.ready,
            reason=served.engine.state.reason,
            accepts_updates=served.settings.accept_updates,
            header_query=content.pop("header_query", ""),
            **content,
        )
    )
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


def problem_page(request: Request, problem: HttpProblem, **content: Any) -> HTMLResponse:
    """A failure as a page: what happened, and where to go from here."""
    title, waiting = TITLES.get(problem.status, "This did not work"), problem.status in (429, 503)
    told = {"title": title, "detail": problem.detail, "heading": "", "near": ()} | content
    response = page(request, "problem.html", problem.status, waiting=waiting, **told)
    response.headers.update(problem.headers)
    return response
