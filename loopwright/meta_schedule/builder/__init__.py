"""Builders. Open `builder.py` first, then `local_builder.py`."""

from loopwright.meta_schedule.builder.builder import Builder as Builder
from loopwright.meta_schedule.builder.builder import BuilderInput as BuilderInput
from loopwright.meta_schedule.builder.builder import BuilderResult as BuilderResult
from loopwright.meta_schedule.builder.builder import PyBuilder as PyBuilder
from loopwright.meta_schedule.builder.builder import create as create
from loopwright.meta_schedule.builder.local_builder import LocalBuilder as LocalBuilder
