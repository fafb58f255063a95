"""Databases of meta_schedule. Open `database.py` first, then `record.py` and `json_database.py`."""

from loopwright.meta_schedule.database.database import Database as Database
from loopwright.meta_schedule.database.database import PyDatabase as PyDatabase
from loopwright.meta_schedule.database.database import create as create
from loopwright.meta_schedule.database.json_database import JSONDatabase as JSONDatabase
from loopwright.meta_schedule.database.memory_database import MemoryDatabase as MemoryDatabase
from loopwright.meta_schedule.database.record import TuningRecord as TuningRecord
from loopwright.meta_schedule.database.record import Workload as Workload
from loopwright.meta_schedule.database.schedule_fn_database import ScheduleFnDatabase as ScheduleFnDatabase
from loopwright.meta_schedule.database.tune_database import TuneDatabase as TuneDatabase
from loopwright.meta_schedule.database.union_database import OrderedUnionDatabase as OrderedUnionDatabase
from loopwright.meta_schedule.database.union_database import UnionDatabase as UnionDatabase

Database.kinds = {
    "json": JSONDatabase,
    "memory": MemoryDatabase,
    "union": UnionDatabase,
    "ordered_union": OrderedUnionDatabase,
    "schedule_fn": ScheduleFnDatabase,
    "tune": TuneDatabase,
}
