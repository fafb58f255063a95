"""Operators on quantized tensors: a stored integer q stands for the real number (q - zero point) · scale.

`quantize.py` goes from real numbers to integers and back, `requantize.py` from one scale to another; `arithmetic.py`
and `products.py` compute on them. Scales and zero points are inputs: a scalar, or one number a place along an axis.
"""
