"""ConvE's query: the vectors of entity and relation as one small picture, convolved and projected back."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

FILTERS, SIDE = 32, 3


def picture_shape(dimension: int) -> tuple[int, int]:
    """(height, width) of a vector laid out as a rectangle that is as square as it can be, and not higher than wide."""
    height = next(side for side in range(math.isqrt(dimension), 0, -1) if dimension % side == 0)
    return height, dimension // height


def can_convolve(dimension: int) -> bool:
    """Whether two such pictures, one above the other, are as large as a filter."""
    height, width = picture_shape(dimension)
    return 2 * height >= SIDE and width >= SIDE


class ConvolutionQuery(nn.Module):
    """Two pictures one above the other → normalise → convolve → project."""

    def __init__(self, dimension: int, dropout: float, map_dropout: float, projection_dropout: float) -> None:
        super().__init__()
        self.shape = picture_shape(dimension)
        height, width = self.shape
        self.before = nn.BatchNorm2d(1)
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv2d(1, FILTERS, SIDE)
        self.of_maps = nn.BatchNorm2d(FILTERS)
        self.map_dropout = nn.Dropout2d(map_dropout)
        self.projection = nn.Linear(FILTERS * (2 * height - SIDE + 1) * (width - SIDE + 1), dimension)
        self.projection_dropout = nn.Dropout(projection_dropout)
        self.after = nn.BatchNorm1d(dimension)

    def forward(self, entity: Tensor, relation: Tensor) -> Tensor:
        """(rows, dimension) from two (rows, dimension)."""
        picture = torch.cat([entity.view(-1, 1, *self.shape), relation.view(-1, 1, *self.shape)], 2)
        maps = self.convolution(self.dropout(self.before(picture)))
        maps = self.map_dropout(torch.relu(self.of_maps(maps)))
        projected = self.projection_dropout(self.projection(maps.flatten(1)))
        return torch.relu(self.after(projected))
