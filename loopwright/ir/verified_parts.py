"""Verified parts: what is known of statements that keep the verifier's rules, for the next version of their function.

A schedule verifies the function after each step. Of five hundred nests a step changes one: the others are the same
objects, and need not be walked again where what they use is defined and what they define is not.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from loopwright.ir.buffer import Buffer
from loopwright.ir.expr import Var
from loopwright.ir.stmt import Stmt


class Part:
    """What a statement that keeps the rules needs from around it, and what it defines."""

    def __init__(self) -> None:
        self.variables: set[Var] = set()  # used
        self.buffers: set[Buffer] = set()
        self.defined: set[Var] = set()
        self.declared: set[Buffer] = set()
        self.memory: set[Var] = set()  # of those, and the sizes that matched buffers give a value

    def add(self, inner: Part) -> None:
        """A statement inside it, of which this is known."""
        self.variables |= inner.variables
        self.buffers |= inner.buffers
        self.defined |= inner.defined
        self.declared |= inner.declared
        self.memory |= inner.memory

    def leave_out_its_own(self) -> None:
        """Keep of what is used only what comes from around it."""
        own = self.defined | self.memory
        self.variables -= own
        self.buffers = {item for item in self.buffers if item not in self.declared and item.data not in own}


class Parts:
    """The last statements that were found to keep the rules; they are compared as objects."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.known: OrderedDict[Stmt, Part] = OrderedDict()

    def get(self, statement: Stmt) -> Part | None:
        return self.known.get(statement)

    def keep(self, statement: Stmt, part: Part) -> None:
        self.known[statement] = part
        while len(self.known) > self.most:
            try:
                self.known.popitem(last=False)
            except KeyError:
                return  # another thread was faster


KEPT: Final = Parts(most=2048)
