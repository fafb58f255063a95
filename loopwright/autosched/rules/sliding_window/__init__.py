"""Windows that move over data without a sum over channels: depthwise convolutions and pooling.

Open `window.py` (what is one), then `tiles.py` (the sizes, by a cost model), `steps.py` (the schedule) and `rule.py`;
`fused_blocks.py` is about the blocks around a window, and `plan.py` puts the parts together and says what was chosen.
"""

from loopwright.autosched.rules.sliding_window.plan import sliding_cycles
from loopwright.autosched.rules.sliding_window.rule import WindowRule
from loopwright.autosched.rules.sliding_window.window import Window, window_of

__all__ = ["Window", "WindowRule", "sliding_cycles", "window_of"]
