"""What the front ends share: questions about tensors, products, windows, loops (`repeat.py`), ways to run a model."""
