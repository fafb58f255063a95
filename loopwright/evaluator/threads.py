"""Threads: loops bound to blocks and threads, barriers, reductions over threads.

A thread is a copy of the slots that are bound inside its loop. `thread_groups.py` runs what threads do together,
`thread_memory.py` has their memory and finds races.
"""

from __future__ import annotations

from loopwright.analysis.thread_axes import axis_of, is_block_tag, is_thread_tag, is_virtual_tag, tag_of
from loopwright.evaluator.locations import Run
from loopwright.evaluator.thread_groups import GroupCompiler
from loopwright.evaluator.thread_memory import Thread, axis_key
from loopwright.evaluator.watch import Watch
from loopwright.ir import AttrStmt, CommReducer, For
from loopwright.runtime.errors import NotBuilt


class ThreadCompiler(GroupCompiler):
    """Compiles statements, thread loops included."""

    def visit_For(self, stmt: For) -> Run:
        return self._threads(stmt) or super().visit_For(stmt)

    def visit_AttrStmt(self, stmt: AttrStmt) -> Run:
        if stmt.attr_key == "reduce_scope" and isinstance(stmt.node, CommReducer):
            return self.with_reducer(stmt, self.visit)
        return self._threads(stmt) or super().visit_AttrStmt(stmt)

    def _threads(self, node: For | AttrStmt) -> Run | None:
        tag = tag_of(node)
        if is_block_tag(tag):
            return self.blocks_of(node)
        if not is_thread_tag(tag):
            return None
        if self.axes:
            return self._turns(node) if is_virtual_tag(tag) else None
        if self.in_lockstep:
            raise NotBuilt("evaluation of thread loops inside vectorized loops")
        frame, first = self.frame, len(self.frame)
        self.in_threads, self.threads_from = True, first
        outside = self.outside = self.private_in(node)
        group = self.fork(node)
        self.in_threads = False

        def run() -> None:
            before = self.current
            self.interval.clear()
            group([Thread(frame[first:], {}, before)])
            self.current = before
            for memory in outside:
                memory.switch(before)

        return run

    def _turns(self, node: For | AttrStmt) -> Run:
        """Virtual threads that one thread runs between barriers, one after the other.

        They disturb each other, but not what the thread does before and after them: it runs that itself.
        """
        axis, frame = axis_of(node), self.frame
        low, extent = self.bounds(node)
        slots, key = self.axis_slots(node), axis_key(axis)
        self.turn_keys.append(key)
        body = self.inside(axis.var, lambda: self.visit(node.body))
        self.turn_keys.pop()

        def run() -> None:
            name, begin = self.turns[-1].now if self.turns else self.interval.now, low()
            watch, before = Watch(""), self.current
            self.turns.append(watch)
            for value in range(begin, begin + extent()):
                watch.now = f"{name[:-1]}, {axis.var.name}={value})"
                self.current = {**before, key: value}
                for slot in slots:
                    frame[slot] = value
                body()
            self.turns.pop()
            self.current = before

        return run
