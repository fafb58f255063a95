"""Hand-offs between blocks: tickets, and status words that one block publishes and later ones await.

Blocks run one after the other, so a word that is not there when it is awaited never comes.
"""

from __future__ import annotations

from collections.abc import Callable

from loopwright.evaluator.errors import HandoffMismatch, element
from loopwright.evaluator.expressions import ExpressionCompiler
from loopwright.evaluator.locations import Place, Run
from loopwright.evaluator.values import Value
from loopwright.ir import Buffer, BufferLoad, Call
from loopwright.runtime.dtype import INT32
from loopwright.runtime.errors import NotBuilt


class HandoffCompiler(ExpressionCompiler):
    """Compiles hand-offs; what watches threads overrides `watched_handoff`."""

    def watched_handoff(self, buffer: Buffer, location: Place, call: Call) -> Callable[[int], None] | None:
        """A look at who else touches the element at an offset."""
        return None

    def hand_off(self, call: Call) -> Run:
        """What a hand-off gives: a ticket, a word, or nothing."""
        pointer = call.args[0]
        load = pointer.args[0] if isinstance(pointer, Call) and pointer.args else None
        if not isinstance(load, BufferLoad) or not self.numeric:
            raise NotBuilt(f"evaluation of {call.op.name} on terms, or of what is no element of a buffer")
        location = self.place(load.buffer, load.indices, load, writes=True)
        watch, where = self.watched_handoff(load.buffer, location, call), location.run
        read = ExpressionCompiler.read(self, load.buffer, location, load)
        write = ExpressionCompiler.write(self, load.buffer, location, load)
        act = self._action(call, read, write, lambda k: element(load.buffer, location.indices_of(k)))

        def run() -> Value:
            k = where()
            if watch is not None:
                watch(k)
            return act(k)

        return run

    def _action(
        self,
        call: Call,
        read: Callable[[int], Value],
        write: Callable[[int, Value], None],
        name: Callable[[int], str],
    ) -> Callable[[int], Value]:
        word = self.value(call.args[1]) if len(call.args) > 1 else None

        def take(k: int) -> Value:
            ticket = read(k)
            write(k, INT32.lowest if ticket == INT32.highest else ticket + 1)
            return ticket

        def publish(k: int) -> Value:
            assert word is not None
            value = word()
            if value == 0:
                raise HandoffMismatch("0 is published, which means that nothing is there", name(k), call)
            if read(k) != 0:
                raise HandoffMismatch("a block publishes what has been published already", name(k), call)
            write(k, value)
            return 0

        def await_published(k: int) -> Value:
            value = read(k)
            if value == 0:
                raise HandoffMismatch("a block waits for what no earlier block publishes", name(k), call)
            return value

        return {"tir.take_ticket": take, "tir.publish": publish}.get(call.op.name, await_published)
