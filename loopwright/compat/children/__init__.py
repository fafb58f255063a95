"""A folder for PYTHONPATH: Python processes that a script starts find `tvm` here, and behind it the door."""
