"""te schedules: `te.create_schedule`, whose stages hold directives that lowering turns into proved steps.

Start with `schedule_state.py` (the graph of stages) and `schedule.py` (what users do with it), then `stage_loops.py`
and `stage.py` (what can be asked of a stage); `replay.py` is where directives become steps of the schedule engine.
Changes of the graph have a file each: `caches.py`, `rfactor.py`, `groups.py`, `layouts.py`, `normalize.py`.
"""

from loopwright.te.schedule.auto_inline import AutoInlineBroadcast, AutoInlineElemWise, AutoInlineInjective
from loopwright.te.schedule.graph import CreateReadGraph, PostDFSOrder
from loopwright.te.schedule.relations import Fuse, IterVarAttr, IterVarRelation, Rebase, Singleton, Split, Transform
from loopwright.te.schedule.schedule import Schedule, create_schedule
from loopwright.te.schedule.stage import Stage
from loopwright.te.schedule.tensor_intrin import TensorIntrin, decl_tensor_intrin


def __getattr__(name: str) -> object:
    if name in _LOWERING:  # they run the schedule engine, which loads when needed
        from loopwright.te.schedule import bounds

        return getattr(bounds, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_LOWERING = (
    "CreateAttachPath",
    "InferBound",
    "ScanFixPointAnalysis",
    "ScanGetBody",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "VerifyCompactBuffer",
)
