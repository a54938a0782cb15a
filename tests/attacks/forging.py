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
from hynt.runs.journal import JOURNAL, UPDATES
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


def write_index(path: Path, content: dict[str, Any]) -> None:
    """Writes JSON that carries the hash of itself."""
    content.pop("sha256", None)
    path.write_bytes(index_text(content).encode("utf-8", "surrogatepass"))


def sign_updates(run: Path) -> None:
    """Makes the journal of a run's updates agree with their files, and each of its lines with itself."""
    signed = []
    for number, line in enumerate((run / UPDATES / JOURNAL).read_bytes().splitlines(), 1):
        record = json.loads(line)
        record.pop("line", None)
        record |= {"sha256": _digest(run / UPDATES / f"{number:06d}.jsonl")} if "sha256" in record else {}
        digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
        signed.append(json.dumps({**record, "line": digest}, sort_keys=True) + "\n")
    (run / UPDATES / JOURNAL).write_text("".join(signed))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
