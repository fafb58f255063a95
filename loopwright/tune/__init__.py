"""Search: schedules that are measured, beginning with the rule's own, and kept in a database.

A `Task` is a program and a target. `Session` searches several tasks (open `session.py` first, then `search.py`): a
`Space` has their candidates, a strategy proposes some, a model of cost orders them, `Measurer` races them, and a
database keeps a `Record` of each.
"""

from loopwright.tune.candidate import Candidate as Candidate
from loopwright.tune.database import Database as Database
from loopwright.tune.database import current_database as current_database
from loopwright.tune.database import open_database as open_database
from loopwright.tune.measure import Measurer as Measurer
from loopwright.tune.record import Record as Record
from loopwright.tune.search import TaskSearch as TaskSearch
from loopwright.tune.search import Trial as Trial
from loopwright.tune.session import Budget as Budget
from loopwright.tune.session import Session as Session
from loopwright.tune.space import RuleSpace as RuleSpace
from loopwright.tune.space import Space as Space
from loopwright.tune.task import Task as Task
