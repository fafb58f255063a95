"""Search: schedules that are measured, beginning with the rule's own, and kept in a database.

A `Task` is a program and a target, a `Candidate` one schedule of it, a `Record` what a measurement of it said.
"""

from loopwright.tune.candidate import Candidate as Candidate
from loopwright.tune.record import Record as Record
from loopwright.tune.task import Task as Task
