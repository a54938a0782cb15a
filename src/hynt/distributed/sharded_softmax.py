"""Sampled softmax where the output table is spread over processes: rows are fetched, everything else stays as it is."""

from __future__ import annotations

import torch
from torch import Tensor

from hynt.distributed.sharded_table import ShardedTable
from hynt.objectives.sampled_softmax import Drawn, cross_entropy_of_rows


def sharded_cross_entropy(
    x: Tensor, table: ShardedTable, bias: ShardedTable, answer: Tensor, drawn: Drawn, smoothing: float
) -> Tensor:
    """(k,) float32, as `sampled_cross_entropy`; `bias` is a table of width 1. All processes call it at once, with as
    many questions and draws as the others.
    """
    ids = torch.cat([drawn.ids.flatten(), answer])
    rows, biases = table(ids), bias(ids)
    mean_row, mean_bias = (table.mean(), bias.mean()) if smoothing > 0 else (rows[0], biases[0])
    means = (mean_row, mean_bias[0], table.rows)
    return cross_entropy_of_rows(x, rows, biases.squeeze(1), means, answer, drawn, smoothing)
