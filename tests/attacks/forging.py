"""Someone else's run or graph, changed by a hand that knows hynt: every hash is made anew, so that only sense is left
to refuse it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from hynt.files import index_text
from hynt.graph.knowledge_graph import FileRecord, Manifest
from hynt.sharing.push_and_pull import LIST


def sign_graph(folder: Path) -> None:
    """Makes the manifest of a graph agree with its files."""
    content = json.loads((folder / "manifest.json").read_bytes())
    content.pop("manifest_sha256", None)
    for name, record in content["files"].items():
        data = (folder / name).read_bytes()
        record |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    files = {name: FileRecord(**record) for name, record in content.pop("files").items()}
    (folder / "manifest.json").write_text(Manifest(**content, files=files).to_json())


def sign_run(run: Path, **changes: Any) -> None:
    """Makes the manifest of a run agree with its files, and the list of a run that was given away with both."""
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest.pop("sha256", None)
    manifest |= changes
    if isinstance(manifest.get("files"), dict):
        manifest["files"] = {name: _digest(run / name) for name in manifest["files"] if (run / name).is_file()}
    (run / "manifest.json").write_text(index_text(manifest))
    if (run / LIST).exists():
        content = json.loads((run / LIST).read_bytes())
        content.pop("sha256", None)
        content["files"] = {name: _digest(run / name) for name in content["files"] if (run / name).is_file()}
        (run / LIST).write_text(index_text(content))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
