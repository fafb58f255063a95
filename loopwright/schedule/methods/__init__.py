"""The methods of `Schedule`, in groups: each names a step, its handles and its settings, and the engine does it.

Start with `loops.py`; `computation.py` and `blocks.py` are about blocks, `copies.py` and `memory.py` about buffers,
`questions.py` finds handles, `samples.py` is for searches, and `show.py` prints. What they share is in `doing.py`.
"""

from loopwright.schedule.methods.blocks import BlockMethods
from loopwright.schedule.methods.computation import ComputationMethods
from loopwright.schedule.methods.copies import CopyMethods
from loopwright.schedule.methods.loops import LoopMethods
from loopwright.schedule.methods.memory import MemoryMethods
from loopwright.schedule.methods.questions import QuestionMethods
from loopwright.schedule.methods.samples import SampleMethods
from loopwright.schedule.methods.show import ShowMethods

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
