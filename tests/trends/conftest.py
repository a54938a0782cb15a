"""The small run that these tests ask."""

from tests.one_thread import one_thread
from tests.town_run import predictor, run, towns, trained

__all__ = ["one_thread", "predictor", "run", "towns", "trained"]
