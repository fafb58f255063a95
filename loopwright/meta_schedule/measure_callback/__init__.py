"""Callbacks after each round. Open `measure_callback.py` first, then `usual.py`."""

from loopwright.meta_schedule.measure_callback.measure_callback import MeasureCallback as MeasureCallback
from loopwright.meta_schedule.measure_callback.measure_callback import PyMeasureCallback as PyMeasureCallback
from loopwright.meta_schedule.measure_callback.measure_callback import create as create
from loopwright.meta_schedule.measure_callback.usual import AddToDatabase as AddToDatabase
from loopwright.meta_schedule.measure_callback.usual import RemoveBuildArtifact as RemoveBuildArtifact
from loopwright.meta_schedule.measure_callback.usual import UpdateCostModel as UpdateCostModel
