"""A graph described as a data set, in the JSON-LD of Croissant 1.0: which files it has, what their columns hold, whose
it is. Other programs find and load it by that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt.files import hashes
from hynt.graph.knowledge_graph import Manifest

CROISSANT = "croissant.json"
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "recordSet": "cr:recordSet",
    "repeated": "cr:repeated",
    "sc": "https://schema.org/",
    "source": "cr:source",
    "subField": "cr:subField",
}
MEANINGS = {
    "head": "The entity that the fact is about.",
    "relation": "What the fact, or the qualifier, says.",
    "tail_entity": "The entity at the end of the fact; null where it is a number.",
    "tail_number": "The number at the end of the fact, in the relation's unit; null where it is an entity.",
    "tail_literal": "The number as its source wrote it.",
    "qualifiers": "What else the fact says: pairs of a relation and an entity or a number.",
}


def croissant_text(manifest: Manifest, folder: Path, inside: str = "") -> str:
    """The description of a graph whose Parquet files lie in the folder `inside` of what is given away."""
    words = [f"{count:,} {name.replace('_', ' ')}" for name, count in manifest.counts.items()]
    name = manifest.name or "a graph without a name"
    files = {path.name: path for path in sorted((folder / inside).glob("*.parquet"))}
    digests = hashes(folder / inside, files)
    fingerprint = hashlib.sha256("".join(digests.values()).encode()).hexdigest()
    described = {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"Facts that carry qualifiers and numbers: {', '.join(words) or 'not counted'}.",
        "license": manifest.licence or "not stated",
        "url": f"urn:hynt:graph:{fingerprint}",
        "creator": {"@type": "sc:Organization", "name": manifest.source or "not stated"},
        "datePublished": datetime.now(UTC).date().isoformat(),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": each,
                "name": each,
                "contentUrl": f"{inside}/{each}" if inside else each,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": "application/vnd.apache.parquet",
                "sha256": digests[each],
            }
            for each, path in files.items()
        ],
        "recordSet": [_records(each, parquet.read_schema(path)) for each, path in files.items()],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _records(file: str, schema: pa.Schema) -> dict[str, Any]:
    name = file.removesuffix(".parquet")
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": [_field(file, name, one) for one in schema]}


def _field(file: str, above: str, one: pa.Field) -> dict[str, Any]:
    """A column; of a list of structures, one that is repeated and has parts."""
    identity = f"{above}/{one.name}"
    found: dict[str, Any] = {"@type": "cr:Field", "@id": identity, "name": identity}
    if one.name in MEANINGS:
        found["description"] = MEANINGS[one.name]
    kind = one.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        found["repeated"], kind = True, kind.value_type
    if pa.types.is_struct(kind):
        found["subField"] = [_field(file, identity, part) for part in kind]
    elif pa.types.is_floating(kind):
        found["dataType"] = "sc:Float"
    elif pa.types.is_integer(kind):
        found["dataType"] = "sc:Integer"
    else:
        found["dataType"] = "sc:Boolean" if pa.types.is_boolean(kind) else "sc:Text"
    column = identity.partition("/")[2].replace("/", ".")
    found["source"] = {"fileObject": {"@id": file}, "extract": {"column": column}}
    return found
