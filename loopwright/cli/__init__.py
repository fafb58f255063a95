"""cli: the command `loopwright`.

`app.py` declares the commands; `doctor.py` finds out what works on this machine, `explain.py` prints an error's page.
"""

from loopwright.cli.app import app, main

__all__ = ["app", "main"]
