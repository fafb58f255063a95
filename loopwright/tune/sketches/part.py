"""Part: what rules, postprocs and mutators share: a name, and the machine they work for.

A part of yours is a class with a name, in a file of its own, put into a list:

    SketchSpace(rules=[*llvm_rules(), Mine()])
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import ClassVar, Self

from loopwright.autosched.machine import Machine


class Part:
    """Something a sketch space is made of. Its settings are fixed when it is made; the machine comes with the task."""

    name: ClassVar[str]

    def on(self, machine: Machine) -> Self:
        """The same part, for a machine."""
        result = copy(self)
        result.__dict__["machine"] = machine
        return result

    @cached_property
    def machine(self) -> Machine:
        """That of the task; this one where none was given."""
        return Machine.of("llvm")
