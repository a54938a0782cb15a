"""The manifest of a saved graph: what it is, where it came from, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hynt.errors import DataError

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
_MAX_BYTES = 4 * 2**20


@dataclass(frozen=True)
class FileRecord:
    """One file of a saved graph."""

    sha256: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class Manifest:
    """Facts about a graph that are not facts of it."""

    name: str = ""
    source: str = ""  # what it was made from, in the maker's words; never an absolute path
    format: str = ""
    licence: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    importing: Mapping[str, Any] = field(default_factory=dict)  # read = kept + rejected, duplicates, splits, …
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        """The file's whole text. It holds its own hash, so that a changed byte shows here too."""
        content = asdict(self)
        digest = hashlib.sha256(_text(content).encode()).hexdigest()
        return _text({**content, "manifest_sha256": digest})


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, refused when it is missing, damaged or of a schema this version cannot read."""
    path = folder / MANIFEST_NAME
    again = "Import the graph again, or restore the file."
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataError("the manifest is larger than any manifest.", where=str(path), advice=again)
        text = path.read_bytes()
        content = json.loads(text)
        version = content["schema_version"]
        if version != SCHEMA_VERSION:
            word = "newer" if isinstance(version, int) and version > SCHEMA_VERSION else "unknown"
            raise DataError(
                f"the graph has schema version {version!r}, {word} to this hynt, which reads version {SCHEMA_VERSION}.",
                where=str(path),
                advice="Upgrade hynt, or import the graph again from its source.",
            )
        del content["manifest_sha256"]
        files = {name: FileRecord(**record) for name, record in content.pop("files").items()}
        manifest = Manifest(**content, files=files)
        if manifest.to_json().encode() != text:
            raise DataError("the manifest was changed: its hash is not its own.", where=str(path), advice=again)
        return manifest
    except FileNotFoundError:
        raise DataError(
            "this folder is not a saved graph: it has no manifest.json.",
            where=str(folder),
            advice="Make one with: hynt data import SOURCE --format F --out DIR.",
        ) from None
    except OSError as problem:
        raise DataError(f"the manifest cannot be read: {problem.strerror}.", where=str(path), advice=again) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError("the manifest is damaged.", where=str(path), advice=again) from None
