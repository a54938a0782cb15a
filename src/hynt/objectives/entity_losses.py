"""Ways to the loss of questions for entities, for a model whose scores of entities are x·Wᵀ + b: from a sample of very
many of them, or, on a GPU, from all of them in one operation.
"""

from __future__ import annotations

from importlib.util import find_spec

from torch import Tensor

from hynt.batches.components import AskableComponents
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.questions import EncodedQuestion
from hynt.kernels.entity_softmax import whole_cross_entropy
from hynt.objectives.losses import AffineOutput, EntityLoss, LossSettings
from hynt.objectives.sampled_softmax import sampler_for


class WholeSoftmax:
    """Scores, loss and gradients of all entities as one operation."""

    def loss(
        self,
        model: AffineOutput,
        asked: EncodedQuestion,
        answer: Tensor,
        weight: Tensor,  # noqa: ARG002 - a row that is no question is weighed by who asks
        smoothing: float,
    ) -> Tensor:
        """(k,) float32 for k questions."""
        table, bias = model.output_table()
        return whole_cross_entropy(asked.encoded, table, bias, answer, smoothing)


def affine_loss(facts: FactTensors, components: AskableComponents, losses: LossSettings) -> EntityLoss | None:
    """What serves best with these facts and settings; None: plain scores and their cross entropy do, as on a CPU."""
    sampler = sampler_for(facts, components, losses)
    if sampler is not None:
        return sampler
    able = facts.device.type == "cuda" and find_spec("triton") is not None and not facts.sizes.literals
    return WholeSoftmax() if able else None
