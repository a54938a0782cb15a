"""From a graph and settings to a trained model: one trainer for every model, runs as folders that can be resumed."""
