"""convolution: sums over windows of an image, by vectors of channels; padding before it, element-wise work after it.

Open `window.py` (what is a convolution), then `tiles.py` (the sizes, by a cost model), `steps.py` (the schedule) and
`rule.py`; `groups.py` and `pointwise.py` bring groups and windows of one pixel to a form that is scheduled already,
and `explain.py` says what was chosen. `pixel_vectors.py` is for few output channels: vectors run along pixels;
`few_pixels.py` for images of few pixels: dot products of weights as they lie.
"""

from loopwright.autosched.rules.convolution.rule import Convolution, direct_cycles

__all__ = ["Convolution", "direct_cycles"]
