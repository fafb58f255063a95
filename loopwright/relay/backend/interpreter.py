"""The values of the interpreter that are no tensors, and the classes of executors, by the names that scripts know."""

from __future__ import annotations

from loopwright.relay.adt import ConstructorValue
from loopwright.relay.executors import ExecutorOfModule
from loopwright.relay.interpreter import RefValue

Executor = Interpreter = ExecutorOfModule

__all__ = ["ConstructorValue", "Executor", "Interpreter", "RefValue"]
