"""The Hugging Face hub, by its own library, which is an extra. Its token is the library's business: HF_TOKEN or
`hf auth login`; hynt never sees it.
"""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hynt.errors import DataError, UsageError
from hynt.sharing.bundle import CARD, LIST, NAMES
from hynt.sharing.croissant import CROISSANT

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
    stale = [name for name in (*NAMES, CROISSANT) if name not in names]
    try:
        api = hub.HfApi()
        api.create_repo(repository.name, private=private, repo_type="model", exist_ok=True)
        with warnings.catch_warnings():
            # A run has its graph with it, which is what the library wonders about.
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file", UserWarning)
            api.upload_folder(
                repo_id=repository.name,
                folder_path=folder,
                repo_type="model",
                revision=repository.revision,
                commit_message="Push a run",
                delete_patterns=stale,
            )
    except _failures(hub) as problem:
        raise _refused(problem, repository) from None


def download(repository: Repository, folder: Path) -> Path:
    """The files of a run, and no others: a script or a pickle in the repository never reaches this machine."""
    hub = _library()
    try:
        hub.HfApi().snapshot_download(
            repository.name,
            repo_type="model",
            revision=repository.revision,
            local_dir=folder,
            allow_patterns=[LIST, CARD, CROISSANT, *NAMES],
        )
    except _failures(hub) as problem:
        raise _refused(problem, repository) from None
    return folder


def _library() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise UsageError(
            "huggingface_hub is not installed.",
            advice="Install it with: pip install 'hynt[hub]', or use a local folder.",
        ) from None
    library: Any = huggingface_hub
    if not sys.stderr.isatty():
        library.utils.disable_progress_bars()
    return library


def _failures(hub: Any) -> tuple[type[Exception], ...]:
    """What the library raises when something outside goes wrong. What its HTTP client says of a broken connection it
    passes on as it is; the client's name has changed over the years.
    """
    clients = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    of_connections = [client.HTTPError for client in clients]
    own = (hub.errors.HfHubHTTPError, hub.errors.HFValidationError)
    return (*own, *of_connections, OSError, ValueError, RuntimeError)


def _refused(problem: Exception, repository: Repository) -> DataError:
    causes = [problem, *([problem.__cause__] if problem.__cause__ is not None else [])]
    words = " ".join((str(cause).strip() or type(cause).__name__).splitlines()[0] for cause in causes)
    return DataError(
        f"the hub did not do it: {words}",
        where=f"{HUB}{repository.name}",
        advice="Check the name, your access (hf auth login) and the network.",
    )
