"""What the front ends share: questions about tensors (`tensors.py`), products, windows, ways to run a model."""
