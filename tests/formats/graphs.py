"""What the format tests share: small facts, nasty names, spoilt lines, one way to read a text."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from hypothesis import strategies as st

from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.registry import get_format
from hynt.graph.fact import DATE_UNIT, Fact, Number, Qualifier
from hynt.graph.units.dates import decimal_year, format_date

# Everything a name may hold: any character but lone surrogates and control characters; tab and line ends are allowed.
names = st.text(
    st.one_of(
        st.characters(blacklist_categories=("Cs", "Cc")),
        st.sampled_from("\t\n\r\\=@|\"+-.,:#'{}[]\u2028\u2029\x85\ufeff１0"),
    ),
    min_size=1,
    max_size=12,
)
literals = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=12)
units = st.one_of(st.just(""), st.sampled_from(["kg", "km2", "/km2", "m/s"]), names)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def numbers(draw: st.DrawFn) -> Number:
    """Numbers with any literal: their own spelling, another number's, or plain text."""
    value = draw(finite)
    literal = draw(st.one_of(st.just(repr(value)), literals, st.integers().map(str)))
    return Number(value, literal, draw(units))


@st.composite
def dates(draw: st.DrawFn) -> Number:
    """Dates on a day, written as ISO or in words, and decimal years between two days."""
    value = draw(st.one_of(st.integers(-4000, 9999).map(lambda year: decimal_year(year, 2, 3)), st.floats(-9999, 9999)))
    return Number(value, draw(st.one_of(st.just(format_date(value)), literals)), DATE_UNIT)


values = st.one_of(names, numbers(), dates())
facts = st.builds(Fact, names, names, values, st.lists(st.builds(Qualifier, names, values), max_size=3).map(tuple))


def mutated(seeds: Sequence[str], alphabet: str, count: int, seed: int) -> Iterator[str]:
    """Lines made from the seeds with up to three random edits each."""
    chance = random.Random(seed)
    for _ in range(count):
        line = list(chance.choice(seeds))
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(line))
            edit = chance.randrange(4)
            if edit == 0:
                del line[at : at + chance.randrange(1, 6)]
            elif edit == 1:
                line[at:at] = chance.choice(alphabet)
            elif edit == 2:
                line[at] = chance.choice(alphabet)
            else:
                line += line[at:]
            line = line or [" "]
        yield "".join(line)


def read_text(text: str | bytes, format_name: str, folder: Path, **options: object) -> tuple[list[Fact], ReadReport]:
    """The facts of a file with this text, and the report."""
    path = folder / "facts"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_file(path, format_name, **options)


def read_file(path: Path, format_name: str, **options: object) -> tuple[list[Fact], ReadReport]:
    """The facts of a file, and the report."""
    report = ReadReport()
    found = list(get_format(format_name).read(path, ReadOptions(**options), report))  # type: ignore[arg-type]
    assert report.read == report.kept + sum(report.rejected.values())
    assert report.kept == len(found)
    return found, report


def only_problem(text: str | bytes, format_name: str, folder: Path, **options: object) -> tuple[str, str, str, str]:
    """The one problem (place, reason, what, advice) of a file whose single record is bad."""
    found, report = read_text(text, format_name, folder, **options)
    assert found == []
    assert len(report.problems) == 1, report.problems
    where, reason, what, advice = report.problems[0]
    return where.removeprefix(f"{folder}/"), reason, what, advice
