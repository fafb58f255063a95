"""cli: the command `loopwright`.

`app.py` declares the commands; `doctor.py` finds out what works on this machine, `explain.py` prints an error's page,
`show.py` shows programs at every stage of lowering, `run.py` runs scripts and programs (`programs.py` finds them),
`cache.py` looks after what is kept of compiled programs, `targets.py` says what can be compiled for. `failures.py` is
how errors end a command.
"""

from loopwright.cli.app import app, main

__all__ = ["app", "main"]
