"""pooling: the greatest value or the sum of each window, with the padding before and the work after it.

    out[n, c, y, x] = max(out[n, c, y, x], data[n, c, y * s + i, x * s + j])

A window that covers all of its data (global pooling) is a reduction, and left to that rule. How windows are scheduled
is in `sliding_window/`.
"""

from __future__ import annotations

from loopwright.autosched.rules.sliding_window import WindowRule


class Pooling(WindowRule):
    """Takes a window without weights, the padding before it, and the element-wise blocks after it."""

    name = "pooling"
    has_weights = False
