"""Questions that are read for several tiles at once, as a model that reads the graph is asked on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.batches.masked_batch import mask
from hynt.evaluation import tiles
from hynt.evaluation.tiles import Tiling, _ReadAhead
from hynt.models.hynt_inductive import HyntInductive, HyntInductiveSettings
from tests.batches.random_graphs import mixed_facts

FACTS = mixed_facts(30)
ROW = np.repeat(np.arange(30), 3)
POSITION = np.tile(np.arange(3), 30)
TILING = Tiling.of(FACTS.qualifier_counts().numpy()[ROW], torch.device("cpu"), rows=16)


@pytest.mark.parametrize("at_once", [2, 64])
def test_every_tile_and_half_a_tile_gets_its_own_questions(at_once, monkeypatch):
    monkeypatch.setattr(tiles, "TILES_AHEAD", at_once)
    torch.manual_seed(0)
    settings = HyntInductiveSettings(dimension=16, layers=1, heads=2, feedforward=16, bins=11)
    model = HyntInductive.build(FACTS.sizes, FACTS, settings).eval()
    row, position = (torch.from_numpy(one[TILING.question]) for one in (ROW, POSITION))
    reads = []

    def batch_of(places, layout):
        reads.append(places)
        return mask(FACTS, row[places], position[places], layout)[0]

    ahead = _ReadAhead(model, batch_of, TILING.tiles)
    with torch.no_grad():
        for tile in TILING.tiles:
            for part in (tile, *tile.halves()):
                found = ahead.question(part)
                alone = model.read(mask(FACTS, row[part.places], position[part.places], part.layout)[0])
                torch.testing.assert_close(found.encoded, alone.encoded, rtol=1e-4, atol=1e-4)
                assert torch.equal(found.relation, alone.relation)
    assert len(reads) == -(-len(TILING.tiles) // at_once)


def test_what_does_not_fit_is_read_tile_by_tile():
    class Full:
        def read(self, batch):
            if len(batch) > 16:
                raise torch.cuda.OutOfMemoryError("out of memory")
            return len(batch)

    ahead = _ReadAhead(Full(), lambda places, layout: range(places.start, places.stop), TILING.tiles)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        ahead._read(TILING.tiles[0])
    assert ahead._read(TILING.tiles[0]) == 16
