"""Databases of tuning records: a SQLite file, a server, or memory; `open_database` takes a path or a URL.

Read interface.py first: what every database does. rows.py has how a record is stored, sql_database.py the statements,
sqlite_database.py and sqlalchemy_database.py how they are run, json_files.py the two files of meta_schedule.
"""

from loopwright.tune.database.current import current_database as current_database
from loopwright.tune.database.errors import BadRecord as BadRecord
from loopwright.tune.database.errors import ClosedDatabase as ClosedDatabase
from loopwright.tune.database.errors import DamagedDatabase as DamagedDatabase
from loopwright.tune.database.errors import DatabaseBusy as DatabaseBusy
from loopwright.tune.database.errors import DatabaseError as DatabaseError
from loopwright.tune.database.errors import DatabaseFull as DatabaseFull
from loopwright.tune.database.errors import DatabaseUnavailable as DatabaseUnavailable
from loopwright.tune.database.errors import ForeignDatabase as ForeignDatabase
from loopwright.tune.database.errors import MissingJsonFile as MissingJsonFile
from loopwright.tune.database.errors import NewerDatabase as NewerDatabase
from loopwright.tune.database.errors import ReadOnlyDatabase as ReadOnlyDatabase
from loopwright.tune.database.interface import Database as Database
from loopwright.tune.database.interface import DatabaseWarning as DatabaseWarning
from loopwright.tune.database.interface import Workload as Workload
from loopwright.tune.database.json_files import export_json as export_json
from loopwright.tune.database.json_files import import_json as import_json
from loopwright.tune.database.open_database import open_database as open_database
from loopwright.tune.database.sqlite_database import MemoryDatabase as MemoryDatabase
from loopwright.tune.database.sqlite_database import SqliteDatabase as SqliteDatabase
