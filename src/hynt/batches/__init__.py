"""From a graph's columns to tensors on a device: scaling, buckets by length, hiding, and the plan of an epoch."""
