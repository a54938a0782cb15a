"""One process with bounded memory for all attacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.limited_hynt import LimitedHynt


@pytest.fixture(scope="session")
def hynt() -> Iterator[LimitedHynt]:
    with LimitedHynt() as process:
        yield process
