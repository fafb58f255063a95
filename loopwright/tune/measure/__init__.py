"""Measuring candidates so that the figures can be believed: processes with limits, and races in interleaved pairs.

Open `measurer.py` first: `Measurer` is what a search calls. `builder.py` makes object code of candidates, `runner.py`
times it, both in forked processes (`children.py`, `limits.py`); `race.py` is the statistics, `noise.py` what else
disturbs; `arguments.py` makes inputs up, `compare.py` says whether results are right, `as_written.py` whether the
program as written can give them, and `failure.py` why a candidate has no time.
"""

from loopwright.tune.measure.arguments import Arguments as Arguments
from loopwright.tune.measure.arguments import given_arguments as given_arguments
from loopwright.tune.measure.arguments import make_arguments as make_arguments
from loopwright.tune.measure.builder import BuildJob as BuildJob
from loopwright.tune.measure.builder import Built as Built
from loopwright.tune.measure.errors import BadMeasureOption as BadMeasureOption
from loopwright.tune.measure.errors import CannotMeasureHere as CannotMeasureHere
from loopwright.tune.measure.errors import NothingToRace as NothingToRace
from loopwright.tune.measure.errors import UnmeasurableTask as UnmeasurableTask
from loopwright.tune.measure.errors import WrongArguments as WrongArguments
from loopwright.tune.measure.failure import Failure as Failure
from loopwright.tune.measure.measurer import Measured as Measured
from loopwright.tune.measure.measurer import Measurer as Measurer
