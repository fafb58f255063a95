"""The steps of a schedule as data: what was done, what was refused, how each was proved.

Open `trace.py` first: `Instruction` and `Trace`. `trace_json.py` is its JSON (`compat/node_graph.py`: how that carries
index maps), `calls.py` writes a step as the user does, `record.py` is what a schedule remembers besides, and
`protocol.py` what those that the engine imports may ask of a schedule.
"""
