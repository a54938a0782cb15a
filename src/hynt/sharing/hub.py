"""The Hugging Face hub, by its own library, which is an extra. Its token is the library's business: HF_TOKEN or
`hf auth login`; hynt never sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.sharing.parcel import CARD, LIST, NAMES

HUB = "hf:"
_REPOSITORY = re.compile(r"hf:(?://)?(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?\Z", re.ASCII)


@dataclass(frozen=True)
class Repository:
    """`hf:owner/name`, or `hf:owner/name@revision`."""

    name: str
    revision: str | None = None

    @classmethod
    def of(cls, text: str) -> Repository:
        """Read as it is written on the command line."""
        found = _REPOSITORY.match(text)
        if found is None:
            advice = f"Write {HUB}owner/name, or {HUB}owner/name@revision."
            raise UsageError(f"{text!r} is no repository on the hub.", advice=advice)
        return cls(found["name"], found["revision"])


def upload(folder: Path, repository: Repository, names: list[str], *, private: bool) -> None:
    """One commit with all files. What an earlier push left and this run lacks is removed; other files stay."""
    hub = _library()
    stale = [name for name in NAMES if name not in names]
    try:
        api = hub.HfApi()
        api.create_repo(repository.name, private=private, repo_type="model", exist_ok=True)
        api.upload_folder(
            repo_id=repository.name, folder_path=folder, repo_type="model", revision=repository.revision,
            commit_message="Push a run", delete_patterns=stale,
        )  # fmt: skip
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError, ValueError) as problem:
        raise _refused(problem, repository) from None


def download(repository: Repository, folder: Path) -> Path:
    """The files of a run, and no others: a script or a pickle in the repository never reaches this machine."""
    hub = _library()
    try:
        hub.HfApi().snapshot_download(
            repository.name, repo_type="model", revision=repository.revision, local_dir=folder,
            allow_patterns=[LIST, CARD, *NAMES],
        )  # fmt: skip
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError, ValueError) as problem:
        raise _refused(problem, repository) from None
    return folder


def _library() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError:
        raise UsageError(
            "huggingface_hub is not installed.",
            advice="Install it with: pip install 'hynt[hub]', or use a local folder.",
        ) from None
    return huggingface_hub


def _refused(problem: Exception, repository: Repository) -> DataError:
    words = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    return DataError(
        f"the hub did not do it: {words}", where=f"{HUB}{repository.name}",
        advice="Check the name, your access (hf auth login) and the network.",
    )  # fmt: skip
