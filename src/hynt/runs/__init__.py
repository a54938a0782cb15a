"""Runs as folders: settings, checkpoints, opening one, and scoring with it. These files are known to whoever looks into
a run without opening it.
"""

CONFIG, RECORD, READS = "config.toml", "metrics.jsonl", "reads.json"
SCALING, WEIGHTS = "scaling.json", "weights.safetensors"

LARGEST_SEED = 2**63 - 1
"""As much as every generator of random numbers takes."""
