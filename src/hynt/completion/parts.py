"""The work folder of a file of answers, hidden beside it: `part-000007.parquet` and how many questions it answers.

The answers themselves appear in one rename, when all parts are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from hynt.errors import UsageError
from hynt.files import WorkFolder, flush, whole_file, writing

_FILE = "parquet"
_GO_ON = "Make room or choose another place; with --resume the job goes on where it stopped."


class CompletionFolder(WorkFolder):
    """The work folder of one output file, with a Parquet file and a JSON file per part."""

    def __init__(self, out: Path, schema: pa.Schema) -> None:
        super().__init__(out.parent / f".{out.name}.partial")
        self.out, self._schema = out, schema
        self._parts = 0

    def open(self, plan: Mapping[str, Any]) -> None:
        super().open(plan)
        self._parts = len(list(self.path.glob("part-*.json")))

    def answered(self) -> int:
        """How many questions the finished parts answer."""
        found = [self.kept(_part(number)) for number in range(self._parts)]
        return sum(self._questions(number, content) for number, content in enumerate(found))

    def _questions(self, number: int, content: Mapping[str, Any] | None) -> int:
        if content is None:
            raise UsageError(
                "a finished part is missing or damaged.",
                where=str(self.file(_part(number), _FILE)),
                advice=f"Remove the folder {self.path} to begin anew.",
            )
        return int(content["questions"])

    def add(self, tables: Iterator[tuple[pa.Table, int]]) -> int:
        """Write the next part from its tables, each of which answers so many questions; how many they are in all.

        Nothing is left of a part where there are no tables.
        """
        first = next(tables, None)
        if first is None:
            return 0
        part, count = _part(self._parts), 0
        with (
            whole_file(self.file(part, _FILE), _GO_ON) as file,
            parquet.ParquetWriter(file, self._schema, compression="zstd") as writer,
        ):
            for table, size in chain([first], tables):
                writer.write_table(table)
                count += size
        self.keep(part, {"questions": count}, [_FILE])
        self._parts += 1
        return count

    def finish(self, metadata: Mapping[bytes, bytes]) -> int:
        """Join the parts to the output and remove the folder; how many rows there are."""
        rows, schema, joined = 0, self._schema.with_metadata(dict(metadata)), self.path / "joined.parquet"
        with whole_file(joined, _GO_ON) as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for number in range(self._parts):
                with parquet.ParquetFile(self.file(_part(number), _FILE)) as part:
                    for group in range(part.num_row_groups):
                        table = part.read_row_group(group)
                        rows += len(table)
                        writer.write_table(table.replace_schema_metadata(schema.metadata))
        with writing(self.out, "the answers", _GO_ON):
            joined.replace(self.out)
            flush(self.out.parent)
        self.remove()
        return rows


def _part(number: int) -> str:
    return f"part-{number:06d}"
