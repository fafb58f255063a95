"""Architectures: small models of many kinds, written here with seeded weights, beside ONNX Runtime and another version.

`python -m benchmarks.architectures` is the race (`race.py`). `models.py` lists the models; each kind has a file:
`unets.py`, `detectors.py`, `images.py`, `audio.py`, `sequences.py`. `layers.py` has what they are built of.
"""
