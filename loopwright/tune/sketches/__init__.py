"""Sketches: a design space for programs that no rule knows, in the spirit of Ansor and meta-schedules.

Start with `space.py` (what a search calls), then `generator.py` and `rules/multi_level_tiling.py` (how sketches are
made). A sketch is a trace with sampled sizes; a candidate is a sketch and decisions; its schedule is replayed and
proved. Rules, postprocs and mutators are classes with a name, one file each, given as lists.
"""

from loopwright.tune.sketches.errors import RejectedByPostproc as RejectedByPostproc
from loopwright.tune.sketches.errors import UnknownScheduleRule as UnknownScheduleRule
from loopwright.tune.sketches.generator import PostOrderApply as PostOrderApply
from loopwright.tune.sketches.rules import llvm_rules as llvm_rules
from loopwright.tune.sketches.sketch import Sketch as Sketch
from loopwright.tune.sketches.space import SketchSpace as SketchSpace
