"""Convolutions: direct, grouped, depthwise, transposed, blocked, deformable, winograd, bit-serial, and their gradients.

Start with `convolution.py`; `window.py` is how a window slides over data, `convolution_samples.py` what tests run.
"""
