"""Settings as frozen dataclasses: typed, checked, and named in every error by their full path.

    @dataclass(frozen=True)
    class Optimizer:
        learning_rate: Annotated[float, Range(0, above_minimum=True)] = 4e-4

    @dataclass(frozen=True)
    class Training:
        optimizer: Optimizer = Optimizer()
        device: Literal["auto", "cpu", "cuda"] = "auto"

    settings = load_toml(Path("training.toml"), Training)
    settings = with_overrides(settings, ["optimizer.learning_rate=1e-3"])

Why not a string-keyed dictionary or a validation library: see docs/decisions/0001-frozen-config.md.
"""

from hynt.config.declarations import Constraint, Range, from_mapping, to_mapping
from hynt.config.overrides import dump_toml, flat, load_toml, read_toml, to_toml, with_overrides

__all__ = [
    "Constraint",
    "Range",
    "dump_toml",
    "flat",
    "from_mapping",
    "load_toml",
    "read_toml",
    "to_mapping",
    "to_toml",
    "with_overrides",
]
