"""IRIs and names: what an RDF term is called in a graph, and back.

An IRI is its own name, with two exceptions: Wikidata's entities and properties go by their ids (`Q42`, `P31`), and
names that hynt wrote (`urn:hynt:entity:…`, `urn:hynt:relation:…`) come back as they were.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

ENTITY_BASE = "urn:hynt:entity:"
RELATION_BASE = "urn:hynt:relation:"
UNIT_BASE = "urn:hynt:unit:"

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TYPE = RDF + "type"
REIFIES = RDF + "reifies"
LANGUAGE_STRINGS = frozenset({RDF + "langString", RDF + "dirLangString"})
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

_RDFS, _SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
TEXT_FOR_PEOPLE = frozenset(
    [LABEL, _RDFS + "comment", *(_SKOS + name for name in ("prefLabel", "altLabel", "definition"))]
    + [base + name for base in _SCHEMA for name in ("name", "description", "alternateName")]
)
"""Predicates whose texts name or describe a thing. Such a triple is no candidate fact."""

WIKIDATA = "http://www.wikidata.org/"
WIKIDATA_ENTITY = WIKIDATA + "entity/"
WIKIDATA_STATEMENT = WIKIDATA_ENTITY + "statement/"
WIKIDATA_PROPERTY = WIKIDATA + "prop/"
WIKIDATA_DIRECT = WIKIDATA_PROPERTY + "direct/"

_WIKIDATA_ID = re.compile(r"[QPLE][1-9][0-9]*(?:-[FS][1-9][0-9]*)?")
_PLAIN_IRI = re.compile(r"https?://[A-Za-z0-9.-]+/[A-Za-z0-9._~/?#&=+:@,;!$'()*-]*")
_SAFE = "._~!$'()*,;=@-"
_LIKE_BLANK = ("_:", ENTITY_BASE + "_%3A")
"""How names begin that stay written as IRIs until blank nodes have their names: nobody must take them for these."""


def entity_name(iri: str) -> str:
    """The name of the entity that an IRI or a blank node (`_:b1`) stands for."""
    if iri.startswith(WIKIDATA_ENTITY):
        identity = iri[len(WIKIDATA_ENTITY) :]
        return identity if _WIKIDATA_ID.fullmatch(identity) else iri
    if iri.startswith(ENTITY_BASE):
        name = unquote(iri[len(ENTITY_BASE) :])
        return iri if name.startswith(_LIKE_BLANK) else name
    return iri


def settled_name(name: str) -> str:
    """A name that `entity_name` left as an IRI, because it looks like that of a blank node, as the graph has it."""
    if name.startswith(ENTITY_BASE):
        plain = unquote(name[len(ENTITY_BASE) :])
        return plain if plain.startswith(_LIKE_BLANK) else name
    return name


@lru_cache(maxsize=65_536)
def relation_name(iri: str) -> str:
    """The name of the relation that a predicate stands for."""
    if iri.startswith(WIKIDATA):
        for base in (WIKIDATA_DIRECT, WIKIDATA_ENTITY, WIKIDATA_PROPERTY):
            identity = iri.removeprefix(base)
            if identity != iri and _WIKIDATA_ID.fullmatch(identity):
                return identity
        return iri
    return unquote(iri[len(RELATION_BASE) :]) if iri.startswith(RELATION_BASE) else iri


def entity_iri(name: str) -> str:
    """The IRI to write an entity with: its name where that is an IRI already, else the name under
    `urn:hynt:entity:`."""
    if _PLAIN_IRI.fullmatch(name) and entity_name(name) == name and not name.startswith(WIKIDATA):
        return name
    return ENTITY_BASE + quote(name, safe=_SAFE)


@lru_cache(maxsize=65_536)
def relation_iri(name: str) -> str:
    """The IRI to write a relation with; predicates that mean something to the reader are not written as they are."""
    special = name in TEXT_FOR_PEOPLE or name == REIFIES or name.startswith(WIKIDATA) or "wikiba.se/" in name
    if _PLAIN_IRI.fullmatch(name) and not special and relation_name(name) == name:
        return name
    return RELATION_BASE + quote(name, safe=_SAFE)


def unit_iri(unit: str) -> str:
    """The datatype of numbers in a unit."""
    return UNIT_BASE + quote(unit, safe=_SAFE)


def unit_name(datatype: str) -> str:
    """The unit of a datatype made by `unit_iri`."""
    return unquote(datatype[len(UNIT_BASE) :])
