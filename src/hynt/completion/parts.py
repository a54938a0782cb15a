"""The work folder of a long job: finished parts of its output, each whole, and what the job is.

It lies hidden beside the output. A kill at any moment leaves the parts that were finished; whoever goes on finds them.
The output itself appears in one rename, when all parts are there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt.errors import DataError, UsageError
from hynt.runs.hashed_files import flush, write_atomically

_JOB = "job.json"
_COUNT = b"hynt-questions"
_JOINED = "joined.parquet"


class CompletionFolder:
    """Of one output file."""

    def __init__(self, out: Path, schema: pa.Schema) -> None:
        self.out, self._schema = out, schema
        self.path = out.parent / f".{out.name}.partial"

    def state(self) -> dict[str, Any] | None:
        """What the job is that was begun here; None where there is none."""
        if not self.path.exists():
            return None
        try:
            found = json.loads((self.path / _JOB).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None  # killed before anything was done
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise UsageError(
                "the state of the stopped job cannot be read.",
                where=str(self.path),
                advice="Remove this folder to begin anew.",
            )
        return found

    def begin(self, state: Mapping[str, Any]) -> None:
        """Starts a new job."""
        self.remove()
        with _writing(self.out):
            self.path.mkdir()
            write_atomically(self.path / _JOB, json.dumps(state, indent=2, sort_keys=True) + "\n")

    def parts(self) -> list[tuple[Path, int]]:
        """The finished parts in order, and how many questions each answers."""
        found = []
        for number in range(len(list(self.path.glob("part-*.parquet")))):
            path = self.path / f"part-{number:06d}.parquet"
            try:
                meta = parquet.read_metadata(path).metadata or {}
                found.append((path, int(meta[_COUNT])))
            except (OSError, pa.ArrowException, KeyError, ValueError):
                raise UsageError(
                    "a finished part is missing or damaged.",
                    where=str(path),
                    advice=f"Remove the folder {self.path} to begin anew.",
                ) from None
        return found

    def add(self, tables: Iterator[tuple[pa.Table, int]]) -> int:
        """Writes the next part from its tables, each of which answers so many questions; how many they are in all.

        Nothing is left of a part where there are no tables.
        """
        number, count = len(self.parts()), 0
        staging = self.path / f"unfinished-{os.getpid()}"
        writer: parquet.ParquetWriter | None = None
        try:
            for table, size in tables:
                with _writing(self.out):
                    writer = writer or parquet.ParquetWriter(staging, self._schema, compression="zstd")
                    writer.write_table(table)
                count += size
            if writer is None:
                return 0
            with _writing(self.out):
                writer.add_key_value_metadata({_COUNT: str(count).encode()})
                writer.close()
                flush(staging)
                staging.replace(self.path / f"part-{number:06d}.parquet")
                flush(self.path)
        finally:
            if writer is not None and writer.is_open:
                writer.close()
        return count

    def finish(self, metadata: Mapping[bytes, bytes]) -> int:
        """Joins the parts to the output and removes the folder; how many rows there are."""
        rows = 0
        with _writing(self.out):
            schema = self._schema.with_metadata(dict(metadata))
            with parquet.ParquetWriter(self.path / _JOINED, schema, compression="zstd") as writer:
                for path, _ in self.parts():
                    with parquet.ParquetFile(path) as part:
                        for group in range(part.num_row_groups):
                            table = part.read_row_group(group)
                            rows += len(table)
                            writer.write_table(table.replace_schema_metadata(schema.metadata))
            flush(self.path / _JOINED)
            (self.path / _JOINED).replace(self.out)
            flush(self.out.parent)
        self.remove()
        return rows

    def remove(self) -> None:
        """Everything in it is gone."""
        shutil.rmtree(self.path, ignore_errors=True)


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise DataError(
            f"the answers cannot be written: {problem.strerror or problem}.",
            where=str(out),
            advice="Make room or choose another place; with --resume the job goes on where it stopped.",
        ) from None
