"""From a graph's columns to tensors on a device: scaling, buckets by length, masking, and the plan of an epoch."""
