"""What can go wrong with a database of tuning records: one class for each thing that its user can do about it."""

from __future__ import annotations

from pathlib import Path

from loopwright.runtime.errors import LoopwrightError


class DatabaseError(LoopwrightError):
    """A database of tuning records cannot do what it was asked for; the subclasses say why.

    No record whose `add` returned is lost by any of them. The example raises `ClosedDatabase`.

    For example:

        from loopwright.tune.database import MemoryDatabase

        database = MemoryDatabase()
        database.close()
        database.records()
    """

    code = "LW1510"


class DatabaseUnavailable(DatabaseError, OSError):
    """A database cannot be opened or reached: its folder or server is not there, or the driver is not installed.

    For example:

        from loopwright.tune.database import open_database

        open_database("no_such_folder/tune.db")
    """

    code = "LW1511"

    def __init__(self, where: str | Path, why: str, hint: str | None = None) -> None:
        super().__init__(
            f"the database {where} cannot be used: {why}", hint=hint, fields={"database": str(where), "reason": why}
        )


class DamagedDatabase(DatabaseError, ValueError):
    """A file that should hold tuning records is no SQLite file, or parts of it were overwritten or cut off.

    A single damaged row is skipped with a warning and raises nothing.

    For example:

        from pathlib import Path
        from loopwright.tune.database import open_database

        Path("tune.db").write_bytes(b"no database" * 1000)
        open_database("tune.db")
    """

    code = "LW1512"

    def __init__(self, where: str | Path, why: str) -> None:
        super().__init__(
            f"the database {where} is damaged: {why}",
            hint=f"save what is readable (sqlite3 {where} .recover | sqlite3 saved.db), "
            "or move the file away: tuning then starts a new one",
            fields={"database": str(where), "reason": why},
        )


class ForeignDatabase(DatabaseError, ValueError):
    """A SQLite file belongs to another program; nothing was written to it.

    For example:

        import sqlite3
        from loopwright.tune.database import open_database

        sqlite3.connect("notes.db").execute("CREATE TABLE notes (line TEXT)")
        open_database("notes.db")
    """

    code = "LW1513"

    def __init__(self, where: str | Path) -> None:
        super().__init__(
            f"{where} is a database of another program, not of tuning records",
            hint="give a file of its own, or one that Loopwright made",
            fields={"database": str(where)},
        )


class NewerDatabase(DatabaseError, ValueError):
    """A database was written by a newer version of Loopwright, in a form that this one does not know.

    For example:

        import sqlite3
        from loopwright.tune.database import open_database

        open_database("tune.db").close()
        sqlite3.connect("tune.db").execute("PRAGMA user_version = 1000")
        open_database("tune.db")
    """

    code = "LW1514"

    def __init__(self, where: str | Path, found: int, known: int) -> None:
        super().__init__(
            f"the database {where} has format {found}, and this version of Loopwright reads up to format {known}",
            hint="update Loopwright, or give another database",
            fields={"database": str(where), "found": found, "known": known},
        )


class ReadOnlyDatabase(DatabaseError, PermissionError):
    """Something was to be stored in a database that can only be read.

    A file without permission to write opens for reading: what is in it can be used.

    For example:

        from loopwright.tune import Record
        from loopwright.tune.database import open_database

        open_database("tune.db").close()
        open_database("tune.db", read_only=True).add(Record("key", "cpu", []))
    """

    code = "LW1515"

    def __init__(self, where: str | Path, why: str) -> None:
        super().__init__(
            f"the database {where} can only be read: {why}",
            hint="open a database that can be written to; its `merge` copies what is in this one",
            fields={"database": str(where), "reason": why},
        )


class DatabaseFull(DatabaseError, OSError):
    """A record could not be written: the disk is full, or it fails. What was there before still is.

    The database stays usable: once there is space, storing works again.

    For example:

        # needs a process of its own
        import resource
        from loopwright.tune import Record
        from loopwright.tune.database import open_database

        database = open_database("tune.db")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        database.add(Record("key", "cpu", [], error="x" * 200_000))
    """

    code = "LW1516"

    def __init__(self, where: str | Path, why: str) -> None:
        super().__init__(
            f"nothing can be written to the database {where}: {why}",
            hint="make space on its disk (`prune` drops records) and try again: nothing stored before is lost",
            fields={"database": str(where), "reason": why},
        )


class DatabaseBusy(DatabaseError, TimeoutError):
    """Another process held the lock for writing longer than this one waits.

    For example:

        import sqlite3
        from loopwright.tune import Record
        from loopwright.tune.database import open_database

        database = open_database("tune.db", timeout=0.1)
        other = sqlite3.connect("tune.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        database.add(Record("key", "cpu", []))
    """

    code = "LW1517"

    def __init__(self, where: str | Path, timeout: float) -> None:
        super().__init__(
            f"the database {where} is locked by another process, and was for {timeout:g} s",
            hint="look for a program that has the file open (fuser FILE), or open it with a longer `timeout`",
            fields={"database": str(where), "timeout": timeout},
        )


class BadRecord(DatabaseError, ValueError):
    """A record holds what no measurement gives: a time that is no positive number, or values that are no plain data.

    Records are stored as JSON: numbers, texts, lists and dicts of them.

    For example:

        from loopwright.tune import Record
        from loopwright.tune.database import MemoryDatabase

        MemoryDatabase().add(Record("key", "cpu", [], seconds=(0.001, float("nan"))))
    """

    code = "LW1518"

    def __init__(self, problem: str) -> None:
        super().__init__(f"a record cannot be stored: {problem}", fields={"reason": problem})


class ClosedDatabase(DatabaseError, ValueError):
    """A database was used after its `close`.

    For example:

        from loopwright.tune.database import MemoryDatabase

        database = MemoryDatabase()
        database.close()
        database.best("key", "cpu")
    """

    code = "LW1519"

    def __init__(self, where: str | Path) -> None:
        super().__init__(
            f"the database {where} was closed", hint="open it again with open_database", fields={"database": str(where)}
        )


class MissingJsonFile(DatabaseError, FileNotFoundError):
    """A folder from which records were to be imported lacks one of meta_schedule's two files.

    They are called `database_workload.json` and `database_tuning_record.json`.

    For example:

        from loopwright.tune.database import MemoryDatabase, import_json

        import_json(MemoryDatabase(), "no_such_folder")
    """

    code = "LW1520"

    def __init__(self, path: str | Path, why: str) -> None:
        super().__init__(
            f"{path} cannot be read: {why}",
            hint="give the work_dir of a tuning run: it has database_workload.json and database_tuning_record.json",
            fields={"file": str(path), "reason": why},
        )
