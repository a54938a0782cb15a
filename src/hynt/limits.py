"""How much of anything hynt takes from a file or a request that it did not make: the one list of such bounds.

They are checked before memory is taken, from what a file says of itself, and are far above what people have.
`docs/reference/limits.md` says what each refuses, and what to do for data that is honest and larger.
"""

from __future__ import annotations

LONGEST_LINE = 16 * 2**20
"""Bytes of a line of text, and of a single text or name in RDF."""

WATCHED_OUTPUT = 64 * 2**20
"""Bytes below which nothing is called a bomb, however small its archive: it does no harm."""

MOST_EXPANSION = 200
"""Bytes that one byte of a file may become: decompressed, or with prefixes and entities written out."""

PARSER_MEMORY = 512 * 2**20
"""Bytes of memory for a parser of whole documents (Turtle, TriG, RDF/XML), which runs in a process of its own."""

DEEPEST_RDF = 100
"""How deep RDF's statements about statements may be nested. No fact has more than one level."""

SMALL_DOCUMENT = 32 * 2**10
"""Bytes of RDF that no nesting and no prefix can make large: read without a process of its own."""
