"""The choices HyNT leaves open: sizes, and a switch for each ablation and each difference between paper and released
code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from hynt.config.constraints import Range

Count = Annotated[int, Range(1)]


@dataclass(frozen=True)
class HyntSettings:
    """Defaults are the paper's form."""

    dimension: Count = 256
    context_layers: Count = 2
    prediction_layers: Count = 2
    context_heads: Count = 16
    prediction_heads: Count = 16
    context_feedforward: Count = 1024
    prediction_feedforward: Count = 1024
    dropout: Annotated[float, Range(0, 1, below_maximum=True)] = 0.1
    tied_output: bool = False
    """Scores entities with their own embeddings instead of a table of their own."""
    encoding: Literal["linear", "hadamard"] = "linear"
    """How triplet and qualifier become one vector; "hadamard" is the ablation with the product of the parts."""
    prediction: Literal["transformer", "linear"] = "transformer"
    """"linear" is the ablation without prediction transformer: one linear map of its inputs, end to end."""
    numbers: Literal["numeric", "discrete"] = "numeric"
    """"discrete" is the ablation that takes each literal for an entity; a number is then the best-ranked literal's."""
    number_bias: bool = True
    """b_r in v·w_r + b_r; the released code has none."""
    encoding_bias: bool = False
    """Biases in W_tri and W_qual; the released code has them."""
    context_position: bool = True
    """The position vector of z in the prediction transformer; the released code adds none."""
    number_of_hidden_relation: Literal["relation", "entity"] = "relation"
    """What embeds a number whose relation is hidden: the w and b of the hidden relation, or, as in the released code,
    the number times the vector of the hidden entity.
    """
    equal_start: bool = False
    """All layers of a transformer start from the same weights, as in the released code."""

    position_scale: Annotated[float, Range(0)] = 1.0
    """How large position vectors start, as a share of Xavier's bound, which is where the released code starts them.
    Small ones leave room for what they are added to (docs/models.md, "How weights start").
    """

    context_scale: Annotated[float, Range(0)] = 1.0
    """How large z starts: the gain of the context transformer's last norm. At 1, where the released code starts, z is
    far larger than the h, r and t it stands beside, and a model may learn to look at nothing else.
    """

    def __post_init__(self) -> None:
        for heads in (self.context_heads, self.prediction_heads):
            if self.dimension % heads:
                raise ValueError(f"the dimension {self.dimension} cannot be shared among {heads} heads")


def as_released(settings: HyntSettings) -> HyntSettings:
    """The same sizes in the form of the authors' released code."""
    from dataclasses import replace

    return replace(
        settings,
        number_bias=False,
        encoding_bias=True,
        context_position=False,
        number_of_hidden_relation="entity",
        equal_start=True,
        position_scale=1.0,
        context_scale=1.0,
    )
