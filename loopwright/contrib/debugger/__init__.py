"""debugger: compiled models with a clock around every kernel, and with the values in between (`debug_executor.py`)."""
