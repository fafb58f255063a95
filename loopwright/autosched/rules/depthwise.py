"""depthwise: convolutions of each channel by windows of its own, with the padding before and the work after them.

    out[n, c, y, x] += data[n, c, y * s + i, x * s + j] * weight[c, i, j]

There is no sum over channels, so few operations for each number that is read: what counts is that a number which is
loaded serves all windows that see it. How windows are scheduled is in `sliding_window/`.
"""

from __future__ import annotations

from loopwright.autosched.rules.sliding_window import WindowRule


class Depthwise(WindowRule):
    """Takes a window with weights, the padding before it, and the element-wise blocks after it."""

    name = "depthwise convolution"
    has_weights = True
