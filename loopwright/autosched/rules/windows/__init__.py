"""Windows that move over data without a sum over channels: depthwise convolutions and pooling.

Open `window.py` (what is one), then `tiles.py` (the sizes, by a cost model) and `steps.py` (the schedule).
"""

from loopwright.autosched.rules.windows.plan import plan_window
from loopwright.autosched.rules.windows.rule import WindowRule
from loopwright.autosched.rules.windows.window import Taken, Window, taken_with, window_of

__all__ = ["Taken", "Window", "WindowRule", "plan_window", "taken_with", "window_of"]
