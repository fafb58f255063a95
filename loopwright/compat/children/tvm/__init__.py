"""What `import tvm` finds first in a child of `python -m loopwright.compat.tvm`: it opens the door, and steps aside."""

import importlib
import sys

from loopwright.compat.door import install

del sys.modules[__name__]  # this module: the import system gives the importer whatever stands there afterwards
install(replace=True)
importlib.import_module("tvm")
