"""Hostile messages to an agent's server and requests to the service, each a function of a seed."""

from __future__ import annotations

import json
import random
from urllib.parse import urlencode

from tests.attacks.mutations import VALUES, changed, mutated

READING = ("search_entities", "facts_of", "numbers_of", "predict", "explain", "trends", "propose", "doubtful_facts")
TOOLS = (*READING, "add_facts", "remove_facts", "no")
ARGUMENTS = (
    *("query", "entity", "relation", "head", "tail", "heads", "qualifiers", "limit", "offset", "points", "kind"),
    *("facts", "key", "skip_known"),
)


def message(seed: int) -> bytes:
    """One line for `hynt mcp`: a call with arguments of any kind, JSON that is no call, or no JSON at all."""
    chance = random.Random(seed)
    fact = {"head": "person 0", "relation": "knows", "tail": f"new {seed % 50}"}
    values = (
        *VALUES,
        [fact],
        [changed(chance, fact)],
        "person 0",
        "knows",
        "height",
        [["person 0"]],
        [{"relation": "year", "value": "?"}],
    )
    arguments = {chance.choice(ARGUMENTS): chance.choice(values) for _ in range(chance.randint(0, 6))}
    call = {
        "jsonrpc": "2.0",
        "id": seed,
        "method": "tools/call",
        "params": {"name": chance.choice(TOOLS), "arguments": arguments},
    }
    how = chance.randrange(6)
    if how == 0:
        call = changed(chance, call)
    elif how == 1:
        arguments["query"] = "x" * chance.choice((1_000, 60_000, 70_000, 5_000_000))
    text = json.dumps(call).encode("utf-8", "surrogatepass")
    if how == 2:
        depth = chance.choice((10, 200, 20_000))
        text = text.replace(b'"arguments": {', b'"arguments": {"query": ' + b"[" * depth + b"]" * depth + b", ", 1)
    elif how == 3:
        text = mutated(chance, text)
    return text.replace(b"\n", b" ").replace(b"\r", b" ")


PATHS = (
    *("/v1/predict", "/v1/explain", "/v1/trends", "/v1/facts", "/v1/entities", "/v1/relations", "/v1/similar"),
    *("/v1/proposals", "/v1/entities/person%200", "/v1/relations/height", "/v1/facts", "/v1/facts", "/mcp"),
)
PAGES = (
    *("/", "/ask", "/trends", "/entity", "/relation", "/relations", "/fact", "/doubtful", "/about", "/docs", "/bulk"),
    *("/neighbourhood", "/suggested", "/state", "/metrics", "/openapi.json"),
)
FIELDS = (
    *("head", "relation", "tail", "qualifier", "value", "query", "id", "top", "offset", "split", "row", "words"),
    *("facts", "key", "source", "skip_known", "entity"),
)


def request(seed: int, token: str = "") -> tuple[bytes, bool]:
    """One request, whose connection is to be closed after the answer: odd values, or bytes that are hardly HTTP; and
    whether it is whole, so that an answer must come. With a token, what may write writes.
    """
    chance = random.Random(seed)
    address = chance.choice((*PATHS, *PAGES, "/entity/", "/v1/entities/%00"))
    if chance.random() < 0.5:
        given = [(chance.choice(FIELDS), str(chance.choice((*VALUES, "Japan", "?")))[:3_000]) for _ in range(4)]
        text = urlencode(given[: chance.randint(1, 4)], errors="surrogatepass")
        head, body = f"GET {address}?{text} HTTP/1.1", b""
    else:
        content = {chance.choice(FIELDS): chance.choice(VALUES) for _ in range(chance.randint(0, 5))}
        asked = {"head": "p0", "relation": "born in", "tail": "?", "questions": [content], "heads": [content]}
        if address == "/v1/facts":
            fact = {"head": f"new {seed % 50}", "relation": "knows", "tail": "person 1", "qualifiers": []}
            asked, content = {"facts": [changed(chance, fact) if chance.random() < 0.5 else fact]}, {}
        sent = {**asked, **content} if chance.random() < 0.2 else changed(chance, {**asked, **content})
        body = message(seed) if address == "/mcp" else json.dumps(sent).encode("utf-8", "surrogatepass")
        head = f"{chance.choice(('POST', 'POST', 'DELETE', 'PUT'))} {address} HTTP/1.1"
    kind = chance.choice(("application/json", "application/json", "text/html", "a/b; charset=x"))
    lines = [
        head,
        "Host: localhost",
        "Connection: close",
        f"Accept: {kind}, text/event-stream",
        f"Content-Type: {kind}",
    ]
    lines += [f"Authorization: Bearer {token}"] if token else []
    whole = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    return (mutated(chance, whole), False) if chance.random() < 0.1 else (whole, True)
