"""The methods of `Schedule`, in groups: each names a step, its handles and its settings, and the engine does it.

Start with `loops.py`; `computation.py` and `blocks.py` are about blocks, `copies.py` and `memory.py` about buffers,
`queries.py` finds handles, `samples.py` is for searches, and `show.py` prints. What they share is in `base.py`.
"""

from loopwright.schedule.engine.methods.blocks import BlockMethods
from loopwright.schedule.engine.methods.computation import ComputationMethods
from loopwright.schedule.engine.methods.copies import CopyMethods
from loopwright.schedule.engine.methods.loops import LoopMethods
from loopwright.schedule.engine.methods.memory import MemoryMethods
from loopwright.schedule.engine.methods.queries import QuestionMethods
from loopwright.schedule.engine.methods.samples import SampleMethods
from loopwright.schedule.engine.methods.show import ShowMethods

__all__ = [
    "BlockMethods",
    "ComputationMethods",
    "CopyMethods",
    "LoopMethods",
    "MemoryMethods",
    "QuestionMethods",
    "SampleMethods",
    "ShowMethods",
]
