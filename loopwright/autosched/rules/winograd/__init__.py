"""winograd: convolutions of stride 1 from fewer products, where the caller allows other rounding and the model says so.

Open `layer.py` (what matches), then `sizes.py` (the cost model), `steps.py` and `channel_transpose.py` (the schedule)
and `rule.py`; `allowed.py` is the caller's setting, and `explain.py` says what was chosen. The step itself, its proof
and its error bound are in `schedule/winograd/`.
"""

from loopwright.autosched.rules.winograd.rule import Winograd

__all__ = ["Winograd"]
