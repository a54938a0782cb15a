"""Small models train on one thread, and Triton's interpreter runs loops whatever NumPy is installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.one_thread import one_thread

__all__ = ["one_thread"]


@pytest.fixture(scope="session", autouse=True)
def loops_in_the_interpreter():
    """Newer NumPy makes no int of an array of one number, which is what the interpreter holds a loop's bound in."""
    if find_spec("triton") is None:
        return
    import triton.runtime.interpreter as interpreter

    patched = interpreter._patch_lang_tensor

    def with_loops(tensor, scope):
        patched(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = with_loops
