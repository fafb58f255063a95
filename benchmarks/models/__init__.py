"""Models to check and to race: made here, or taken from the onnx package, with seeded random weights.

`light.py` has the networks of the onnx package, `transformers.py` an encoder and a decoder, `check.py` holds compiled
models against float64, launch by launch.
"""
