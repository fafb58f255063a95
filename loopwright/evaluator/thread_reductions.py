"""Reductions over threads: `tvm_thread_allreduce` under a `reduce_scope`, whose combiner says how two values join."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.evaluator.locations import Run
from loopwright.evaluator.thread_memory import Group, Thread, ThreadMemoryCompiler, Threads
from loopwright.evaluator.values import Body, Value
from loopwright.ir import AttrStmt, BufferLoad, BufferStore, Call, CommReducer, Evaluate, Expr, IntImm, Stmt, Var
from loopwright.runtime.errors import NotBuilt


class ReductionCompiler(ThreadMemoryCompiler):
    """Compiles reductions over threads; `GroupCompiler` adds all other statements around barriers."""

    def with_reducer(self, stmt: AttrStmt, compile_body: Callable[[Stmt], Body]) -> Body:
        assert isinstance(stmt.node, CommReducer)
        outer, self.reducer = self.reducer, stmt.node
        body = compile_body(stmt.body)
        self.reducer = outer
        return body

    def allreduce(self, stmt: Stmt) -> Group:
        """tvm_threadallreduce(n, values…, condition, results…, threads…): every thread gets the whole."""
        assert isinstance(stmt, Evaluate) and isinstance(stmt.value, Call)
        arguments, reducer = stmt.value.args, self.reducer
        if reducer is None:
            raise NotBuilt("evaluation of a reduction over threads without a reduce_scope around it")
        count = arguments[0].value if isinstance(arguments[0], IntImm) else 1
        values, condition = arguments[1 : 1 + count], arguments[1 + count]
        results, over = arguments[2 + count : 2 + 2 * count], set(arguments[2 + 2 * count :])
        rest = [axis for axis in self.axes if not self.together.names(axis) & over]
        take = self.as_thread(self._values([*values]))
        holds = self.steered(condition)
        combine, identity = self._combiner(reducer)
        put = self._as_results(results)

        def run(threads: Threads) -> None:
            self.barrier()
            totals: dict[tuple[int, ...], list[Value]] = {}
            for thread in threads:
                key = tuple([thread.index[axis] for axis in rest])
                result = totals.get(key) or identity()
                totals[key] = combine(result, take(thread)) if holds(thread) else result
            self.barrier()
            for thread in threads:
                put(thread, totals[tuple([thread.index[axis] for axis in rest])])
            self.barrier()

        return run

    def _values(self, exprs: Sequence[Expr]) -> Run:
        runs = [self.visit(expr) for expr in exprs]
        return lambda: [run() for run in runs]

    def _combiner(self, reducer: CommReducer) -> tuple[Callable[[list[Value], list[Value]], list[Value]], Run]:
        left, right = [self.slot(var) for var in reducer.lhs], [self.slot(var) for var in reducer.rhs]
        result, frame = self._values(reducer.result), self.frame

        def combine(a: list[Value], b: list[Value]) -> list[Value]:
            for slot, value in zip([*left, *right], [*a, *b], strict=True):
                frame[slot] = value
            answer: list[Value] = result()
            return answer

        return combine, self._values(reducer.identity_element)

    def _as_results(self, results: Sequence[Expr]) -> Callable[[Thread, list[Value]], None]:
        stores = []
        for result in results:
            if isinstance(result, BufferLoad):
                var = Var("total", result.dtype)
                slot = self.slot(var)
                run = self.visit(BufferStore(result.buffer, var, result.indices))
            else:
                raise NotBuilt("evaluation of a reduction over threads into a bare pointer", "name an element, R[0]")
            stores.append((slot, run))
        frame, box = self.frame, [[]]  # type: ignore[var-annotated]

        def store() -> None:
            for (slot, run), value in zip(stores, box[0], strict=True):
                frame[slot] = value
                run()

        as_thread = self.as_thread(store)

        def put(thread: Thread, values: list[Value]) -> None:
            box[0] = values
            as_thread(thread)

        return put
