"""cli: the command `loopwright`.

`app.py` declares the commands; `doctor.py` finds out what works on this machine, `explain.py` prints an error's page,
`show.py` shows programs at every stage of lowering, `run.py` runs scripts and programs (`programs.py` finds them),
`cache.py` looks after what is kept of compiled programs, `targets.py` says what can be compiled for. `failures.py` is
how errors end a command, `guessed_commands.py` what is said to a command that there is not.

`model_commands.py` declares the commands for models. `model_files.py` reads a model, `compiled_model.py` compiles it,
`interface.py` is how it is called. `compile.py` writes it (`package.py`: an archive; `report.py`: a page, with
`graph_drawing.py`), `run_model.py` runs it, `inspect.py` says what it is made of.
"""

from loopwright.cli.app import app, main

__all__ = ["app", "main"]
