"""What a model learns from: streams of items, and the losses they are judged by."""
