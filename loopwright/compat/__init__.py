"""Doors for programs written for others: `compat.tvm` lets a script written for TVM v0.15 run here as it is.

`tvm.py` is the door itself, and what `python -m loopwright.compat.tvm script.py` runs. Behind it: `door.py` (the import
hook), `paths.py` (which of our modules each of the peer's paths means), `names.py` (the names a module of the peer's
has), `modules.py` (the modules a script gets), `stand_in.py` (what is not built), `ignored_arguments.py` (arguments
that mean nothing here) and `run.py` (running a script).

`pass_names.py` (the peer's passes), `settings.py` (settings of a PassContext that we ignore) and `node_graph.py` (index
maps in the peer's traces) serve without the door too.
"""
