"""The vectors that a model has for entities: to write to a file, and to find which entities are alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from hynt.asking.answers import SimilarEntity
from hynt.errors import UsageError
from hynt.files import whole_file
from hynt.models.contract import EmbedsEntities, give_observed
from hynt.runs.opening import LoadedRun

_ROWS_AT_ONCE = 65_536


def entity_vectors(loaded: LoadedRun) -> NDArray[np.float32]:
    """(entities, width) what the model has learned about each entity, or reads about it in the observed facts."""
    count, model = loaded.graph.vocabulary.entity_count, loaded.trained
    if not isinstance(model, EmbedsEntities):
        raise UsageError(
            f"the model {loaded.settings.model_name!r} keeps no vectors for entities.",
            advice="Take a run of a model that learns them, such as hynt.",
        )
    if loaded.observed is not None:
        give_observed(loaded.trained, loaded.observed.facts)
    with torch.no_grad():
        return np.ascontiguousarray(model.entity_vectors()[:count].float().cpu().numpy())


def write_embeddings(loaded: LoadedRun, out: Path) -> int:
    """Writes Parquet with the columns id, name, type and vector, whole or not at all; returns the width."""
    vectors, graph = entity_vectors(loaded), loaded.graph
    width = int(vectors.shape[1])
    schema = pa.schema(
        [("id", pa.string()), ("name", pa.string()), ("type", pa.string()), ("vector", pa.list_(pa.float32(), width))]
    )
    with whole_file(out) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for first in range(0, len(vectors), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            entities = graph.entities[rows]
            texts = ([one.name for one in entities], graph.entity_labels[rows], [one.type for one in entities])
            flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors[rows].reshape(-1)), width)
            columns = [*(pa.array(text, pa.string()) for text in texts), flat]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return width


def similar_entities(loaded: LoadedRun, entity: int, top: int) -> list[SimilarEntity]:
    """The entities whose vectors point most nearly the same way, the entity itself left out."""
    vectors, graph = entity_vectors(loaded), loaded.graph
    lengths = np.linalg.norm(vectors, axis=1)
    safe = np.where(lengths > 0, lengths, 1.0)
    cosine = (vectors @ (vectors[entity] / safe[entity])) / safe
    order = np.lexsort((np.arange(len(cosine)), -cosine))
    chosen = order[order != entity][:top]
    return [
        SimilarEntity(
            rank,
            graph.entities[index].name,
            graph.entity_labels[index],
            graph.entities[index].type,
            float(min(1.0, max(-1.0, cosine[index]))),
        )
        for rank, index in enumerate(chosen.tolist(), 1)
    ]
