"""What a source looks up in the whole dump before parsing, kept in the work folder so that it is looked up once."""

from __future__ import annotations

import json
from dataclasses import replace

from hynt.creation.scanning import Scan
from hynt.creation.selection import Selection
from hynt.creation.sources.source import DumpSource, ParseSettings
from hynt.creation.work_folder import WorkFolder, write_atomically

_FILE = "prepared.json"


def prepared(
    kind: DumpSource, dump: Scan, selection: Selection, settings: ParseSettings, work: WorkFolder
) -> tuple[Selection, ParseSettings]:
    """The selection and settings to parse with."""
    path = work.folder / _FILE
    if path.exists():
        held = json.loads(path.read_bytes())
        entities = None if held["entities"] is None else frozenset(held["entities"])
        return (
            replace(selection, entities=entities, types=frozenset(held["types"])),
            replace(
                settings,
                mediator_types=frozenset(held["mediator_types"]),
                number_properties=frozenset(held["number_properties"]),
            ),
        )
    found, filled = kind.prepare(dump, selection, settings)
    content = {
        "entities": None if found.entities is None else sorted(found.entities),
        "types": sorted(found.types),
        "mediator_types": sorted(filled.mediator_types),
        "number_properties": sorted(filled.number_properties),
    }
    write_atomically(path, json.dumps(content, ensure_ascii=False).encode())
    return replace(selection, entities=found.entities, types=found.types), filled
