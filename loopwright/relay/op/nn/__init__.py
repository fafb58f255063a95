"""relay.nn: the operators of neural networks in graphs. `convolutions.py` and `norms.py` are the ones to open first."""
