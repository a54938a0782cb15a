"""Where trials are kept: a SQLite file for one machine, a PostgreSQL server for many.

A password in a URL stays in memory: it is in no file, no argument of a process and no message.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from hynt.errors import DataError, UsageError

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

INSTALL = "Install it with: pip install 'hynt[sweep]'."
RETRIES = 3
"""How often a trial is tried again after the worker at it was lost."""

_TRIES_TO_OPEN = 5


@dataclass(frozen=True)
class StudyStorage:
    """A place for trials. `str()` of it has no password."""

    url: str = field(repr=False)
    file: str = ""  # as it was given, of a SQLite file

    @classmethod
    def of(cls, given: str | None, default: Path) -> StudyStorage:
        """From what was said: nothing, the path of a SQLite file, or the URL of a PostgreSQL server."""
        if given is None:
            return cls(f"sqlite:///{default.resolve()}", str(default))
        scheme = given.partition("://")[0] if "://" in given else ""
        if scheme == "sqlite":
            return cls(given, given.removeprefix("sqlite:///"))
        if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
            try:
                _ = urlsplit(given).port
            except ValueError:
                raise UsageError("the URL has no valid port.", where="--storage") from None
            return cls(f"postgresql+psycopg{given.removeprefix(scheme)}")
        if scheme:
            raise UsageError(
                f"a sweep cannot be kept in {scheme!r}.",
                where="--storage",
                advice="Give the path of a SQLite file or a postgresql:// URL.",
            )
        return cls(f"sqlite:///{Path(given).resolve()}", given)

    @property
    def is_server(self) -> bool:
        return not self.url.startswith("sqlite")

    def __str__(self) -> str:
        if not self.is_server:
            return self.file
        parts = urlsplit(self.url)
        place = parts.hostname or ""
        place += f":{parts.port}" if parts.port else ""
        name = f"{parts.username}@" if parts.username else ""
        # A query may hold a password too, so it is not shown at all.
        return urlunsplit((parts.scheme.partition("+")[0], f"{name}{place}", parts.path, "", ""))

    def without_secrets(self, text: str) -> str:
        """A message of another library, with the URL and the password taken out."""
        parts = urlsplit(self.url)
        secrets = {self.url, parts.query, *((parts.password, unquote(parts.password)) if parts.password else ())}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***") if secret else text
        return text

    def open(self, heartbeat: int, grace: int) -> RDBStorage:
        """The storage, with tables made where there are none. A worker shows every `heartbeat` seconds that it is
        alive; one that was not heard of for `grace` seconds is lost, and its trial is tried again.
        """
        optuna, alchemy = load_optuna(), _load_sqlalchemy()
        options: dict[str, Any] = {} if self.is_server else {"connect_args": {"timeout": 60}}
        for attempt in range(_TRIES_TO_OPEN):
            try:
                return optuna.storages.RDBStorage(  # type: ignore[no-any-return]
                    self.url,
                    engine_kwargs=options,
                    heartbeat_interval=heartbeat,
                    grace_period=grace,
                    heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(
                        RETRIES, inherit_intermediate_values=True
                    ),
                )
            except ImportError as problem:
                raise UsageError(f"the driver of the storage is missing: {problem}.", advice=INSTALL) from None
            except (alchemy.exc.ProgrammingError, alchemy.exc.IntegrityError, alchemy.exc.OperationalError) as problem:
                # Two workers that both find an empty server both make the tables; the slower one finds them there.
                if attempt + 1 == _TRIES_TO_OPEN or "connection" in str(problem).lower():
                    raise self.refused(problem) from None
                time.sleep(0.5 * (attempt + 1))
            except (alchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as problem:
                raise self.refused(problem) from None
        raise AssertionError("the loop returns or raises")

    def refused(self, problem: Exception) -> DataError:
        """What the database said, without secrets."""
        said = self.without_secrets(str(getattr(problem, "orig", None) or problem)).strip().splitlines()
        return DataError(
            f"the storage of the sweep cannot be used: {said[0] if said else type(problem).__name__}.",
            where=str(self),
            advice="Check the address, the name, the password and that the server runs."
            if self.is_server
            else "Check that there is room, and the right to write there.",
        )


def load_optuna() -> Any:
    """The library, quiet: what it would log is told by hynt itself."""
    try:
        import optuna
    except ImportError:
        raise UsageError("a sweep needs Optuna, which is not installed.", advice=INSTALL) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _load_sqlalchemy() -> Any:
    import sqlalchemy
    import sqlalchemy.exc

    return sqlalchemy
