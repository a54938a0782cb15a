"""Sending the metrics of a run elsewhere as it trains: TensorBoard, MLflow, Weights & Biases."""
