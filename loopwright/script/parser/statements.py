"""Statements of a script: one method a kind of Python statement, and one a kind of directive.

A body is a list of statements. Some of them (`x = expr`, `T.attr(...)`, `assert`, `p = T.allocate(...)`) take the rest
of the body into their scope; the body is folded together from its end, so their number is not limited by recursion.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from loopwright.ir import (
    AssertStmt,
    BufferRegion,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    SeqStmt,
    Stmt,
    Var,
    While,
    as_expr,
    const,
    no_op,
)
from loopwright.ir.intrinsics import ret
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser import directives as d
from loopwright.script.parser.assignments import Assignments
from loopwright.script.parser.blocks import Wrap
from loopwright.script.parser.differences import extent_between
from loopwright.script.parser.errors import (
    BadValueType,
    NotAScope,
    NotAStatement,
    UnsupportedStatement,
    WrongIterator,
    WrongTargets,
    count,
    describe,
)
from loopwright.script.parser.frames import Frame
from loopwright.script.parser.macros import splice
from loopwright.script.parser.memory import Part

_UNSUPPORTED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.Return: ("return without a value, or in a macro,", "a function ends by itself, or with return value"),
    ast.Delete: ("del", "names end with their scope"),
    ast.FunctionDef: ("a nested function", "define it outside, or use @T.macro there"),
    ast.AsyncFunctionDef: ("a nested function", "define it outside, or use @T.macro there"),
    ast.ClassDef: ("a nested class", "define it outside the script"),
    ast.AsyncFor: ("async for", "use for"),
    ast.AsyncWith: ("async with", "use with"),
    ast.Match: ("match", "use if and elif"),
    ast.Raise: ("raise", "use assert condition, message"),
    ast.Try: ("try", "use if, or assert"),
    ast.Import: ("import", "import outside the script"),
    ast.ImportFrom: ("import", "import outside the script"),
    ast.Global: ("global", "names of a script are its own"),
    ast.Nonlocal: ("nonlocal", "names of a script are its own"),
    ast.Break: ("break", "use while with a condition"),
    ast.Continue: ("continue", "use if around the rest of the loop"),
}


class StatementParser(Assignments):
    """Parse statements."""

    # --- bodies ---

    def body(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements as one."""
        done: list[Stmt] = []
        opened: list[tuple[list[Stmt], Wrap]] = []
        for node in nodes:
            handler = self._statements.get(type(node))
            if handler is None:
                name, hint = _UNSUPPORTED.get(type(node), (type(node).__name__, "write it with T"))
                raise UnsupportedStatement(name, hint, self.place(node))
            result = handler(self, node)
            if result is None:
                continue
            for part in result if isinstance(result, list) else (result,):
                if isinstance(part, Stmt):
                    done.append(part)
                else:
                    opened.append((done, part))
                    done = []
        built = sequence(done)
        for before, wrap in reversed(opened):
            built = sequence([*before, wrap(built) or no_op()])
        return built

    def scoped_body(self, nodes: Sequence[ast.stmt], frame: Frame) -> Stmt:
        """The statements in a frame and a name scope of their own."""
        self.frames.append(frame)
        self.scopes.enter()
        result = self.body(nodes)
        self.scopes.leave()
        self.frames.pop()
        return result

    # --- control ---

    def _for(self, node: ast.For) -> Stmt:
        if node.orelse:
            raise UnsupportedStatement("else after for", "put it after the loop", self.place(node.orelse[0]))
        span = self.place(node)
        spec = self._loop_spec(node.iter)
        specs = (
            [spec]
            if isinstance(spec, d.LoopSpec)
            else [d.LoopSpec(ForKind.SERIAL, extent, None, None, {}) for extent in spec.extents]
        )
        names = self._loop_names(node.target, len(specs), isinstance(spec, d.GridSpec))
        loops = [self.loop(one, name, node.iter) for one, name in zip(specs, names, strict=True)]
        self.frames.append(Frame("inside a loop"))
        self.scopes.enter()
        variables = [loop[0] for loop in loops]
        for var, low, extent, *_ in loops:
            self.loops[var] = (low, extent)
        self._bind_loop_vars(node.target, variables, isinstance(spec, d.GridSpec))
        result = self.body(node.body)
        self.scopes.leave()
        self.frames.pop()
        for var, low, extent, kind, thread, notes in reversed(loops):
            del self.loops[var]
            result = For._make(var, low, extent, kind, result, thread, notes, span=span)
        return result

    def _loop_spec(self, node: ast.expr) -> d.LoopSpec | d.GridSpec:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = self.scopes.get(node.func.id)
            if function is builtins.range:
                bounds = [self.value(arg) for arg in node.args]
                notes = {keyword.arg: keyword.value for keyword in node.keywords}
                if notes.keys() - {"annotations"} or not 1 <= len(bounds) <= 2:
                    raise WrongIterator(
                        f"range takes an extent, or begin and end, got {count(len(bounds), 'argument')}",
                        self.place(node),
                        _without_step(bounds),
                    )
                kept: Any = self.value(notes["annotations"]) if notes else {}
                return d.LoopSpec(ForKind.SERIAL, bounds[0], bounds[1] if len(bounds) == 2 else None, None, kept or {})
        value = self.evaluate(node)
        if not isinstance(value, (d.LoopSpec, d.GridSpec)):
            raise WrongIterator(f"a for loop cannot run over {describe(value)}", self.place(node))
        return value

    def _loop_names(self, target: ast.expr, loops: int, grid: bool) -> list[str]:
        if isinstance(target, ast.Name):
            return [target.id] if not grid else [f"{target.id}_{k}" if loops > 1 else target.id for k in range(loops)]
        if grid and isinstance(target, (ast.Tuple, ast.List)):
            names: list[str] = []
            stars = sum(isinstance(one, ast.Starred) for one in target.elts)
            spread = loops - (len(target.elts) - stars)
            for one in target.elts:
                if isinstance(one, ast.Name):
                    names.append(one.id)
                elif isinstance(one, ast.Starred) and isinstance(one.value, ast.Name) and stars == 1 and spread >= 0:
                    names += [f"{one.value.id}_{k}" for k in range(spread)]
            if len(names) == loops and (stars or len(target.elts) == loops):
                return names
            raise WrongTargets(
                f"T.grid makes {count(loops, 'loop')}, but there are {count(len(target.elts), 'name')} for them",
                self.place(target),
                "give every loop a name",
            )
        raise WrongTargets(
            "the variable of a loop must be one name", self.place(target), "only T.grid makes several loops at once"
        )

    def _bind_loop_vars(self, target: ast.expr, variables: list[Var], grid: bool) -> None:
        if isinstance(target, ast.Name):
            self.define(target, variables if grid and len(variables) > 1 else variables[0])
            return
        assert isinstance(target, (ast.Tuple, ast.List))
        self.unpack(target, variables, lambda name, value: self.define(name, value))

    def loop(
        self, spec: d.LoopSpec, name: str, node: ast.expr
    ) -> tuple[Var, Expr, Expr, ForKind, IterVar | None, dict[str, object]]:
        """The parts of the loop that `spec` asks for, in the order of the fields of `For`, without its body."""
        try:
            if spec.end is None:
                extent = as_expr(spec.begin)
                low: Expr = const(0, extent.dtype) if extent.dtype.is_int else const(0)
            else:
                low, extent = extent_between(spec.begin, spec.end)
        except Exception as error:
            raise self.failed(error, node) from error
        if not extent.dtype.is_int or extent.dtype.lanes != 1:
            raise BadValueType(f"the extent of a loop must be an integer, got {extent.dtype}", self.place(node))
        thread = None
        if spec.kind is ForKind.THREAD_BINDING:
            assert spec.thread is not None
            thread = IterVar(None, Var(spec.thread, extent.dtype), IterType.ThreadIndex, spec.thread)
        return Var(name, extent.dtype), low, extent, spec.kind, thread, dict(spec.annotations)

    def _while(self, node: ast.While) -> Stmt:
        if node.orelse:
            raise UnsupportedStatement("else after while", "put it after the loop", self.place(node.orelse[0]))
        condition = self.condition(node.test)
        return While._make(condition, self.scoped_body(node.body, Frame("inside a while loop")), span=self.place(node))

    def _if(self, node: ast.If) -> Stmt | None:
        known = self.value(node.test)
        if isinstance(known, bool):  # of Python, and so the choice is made now
            chosen = node.body if known else node.orelse
            return self.scoped_body(chosen, Frame("inside an if")) if chosen else None
        condition = self.as_condition(known, node.test)
        then_case = self.scoped_body(node.body, Frame("inside an if"))
        else_case = self.scoped_body(node.orelse, Frame("inside an else")) if node.orelse else None
        return IfThenElse._make(condition, then_case, else_case, span=self.place(node))

    def _assert(self, node: ast.Assert) -> Wrap:
        condition = self.condition(node.test)
        message = as_expr("" if node.msg is None else self.evaluate(node.msg))
        span = self.place(node)
        return lambda body: AssertStmt._make(condition, message, body, span=span)

    def _with(self, node: ast.With) -> Stmt | None:
        wraps: list[Wrap] = []
        for item in node.items:
            value = self.evaluate(item.context_expr)
            target = item.optional_vars
            bound = None
            frame: Frame
            if isinstance(value, d.BlockSpec):
                frame, wrap = self.open_block(value, node)
            elif isinstance(value, d.InitSpec):
                frame, wrap = self.open_init(node)
            else:
                opener = self.openers.get(type(value))
                if opener is None:
                    raise NotAScope(value, self.place(item.context_expr))
                frame = Frame("inside a with")
                name = target.id if isinstance(target, ast.Name) else ""
                bound, wrap = opener(self, value, name, item.context_expr)
            self.frames.append(frame)
            self.scopes.enter()
            wraps.append(wrap)
            if target is not None:
                if bound is None or not isinstance(target, ast.Name):
                    what = "this scope gives no value for `as`" if bound is None else "`as` takes one name here"
                    raise WrongTargets(what, self.place(target), "drop the `as`" if bound is None else None)
                self.define(target, bound)
        result: Stmt | None = self.body(node.body)
        for wrap in reversed(wraps):
            self.scopes.leave()
            self.frames.pop()
            result = wrap(result if result is not None else no_op())
        return result

    # --- expressions as statements ---

    def _expression(self, node: ast.Expr) -> Part | None:
        value = self.evaluate(node.value)
        return self.perform(value, node)

    def perform(self, value: object, node: ast.Expr) -> Part | None:
        """A value that stands alone: a statement, something computed for its effect, or a directive."""
        if isinstance(value, Stmt):
            return _at(value, self.place(node))
        if isinstance(value, BufferRegion):
            value = self.vector(value, node)
        if isinstance(value, (Expr, bool, int)):
            return Evaluate._make(as_expr(value), span=self.place(node))
        if value is None or isinstance(value, str):
            return None
        if isinstance(value, d.MacroCall):
            return splice(self, value, self.place(node))
        performer = self.performers.get(type(value))
        if performer is not None:
            performer(self, value, node.value)
            return None
        opener = self.openers.get(type(value))
        if opener is not None:
            return opener(self, value, "", node.value)[1]
        raise NotAStatement(value, self.place(node))

    def _return(self, node: ast.Return) -> Part | None:
        """`return value` is `T.ret(value)`."""
        if node.value is None or self.macro_depth:
            raise UnsupportedStatement(*_UNSUPPORTED[ast.Return], self.place(node))
        value = self.evaluate(node.value)
        if not isinstance(value, (Expr, bool, int, float)):
            raise NotAStatement(value, self.place(node))
        return Evaluate._make(ret(value), span=self.place(node))

    def _pass(self, node: ast.Pass) -> None:
        return None

    _statements: ClassVar[dict[type, Callable[[Any, Any], Part | list[Part] | None]]] = {
        ast.For: _for,
        ast.While: _while,
        ast.If: _if,
        ast.Assert: _assert,
        ast.With: _with,
        ast.Assign: Assignments.assign,
        ast.AnnAssign: Assignments.annotated,
        ast.AugAssign: Assignments.augmented,
        ast.Expr: _expression,
        ast.Return: _return,
        ast.Pass: _pass,
    }


def sequence(statements: list[Stmt]) -> Stmt:
    """The statements as one. No-ops that the user wrote stay: the text must read back as it was."""
    if not statements:
        return no_op()
    return statements[0] if len(statements) == 1 else SeqStmt(tuple(statements))


def _at(statement: Stmt, span: SourceLine) -> Stmt:
    values = [getattr(statement, one.name) for one in statement.node_fields]
    return type(statement)._make(*values, span=span)


def _without_step(bounds: list[Any]) -> str | None:
    """How to write range(begin, end, step) of literals with an extent alone."""
    if len(bounds) != 3 or not all(isinstance(bound, int) for bound in bounds) or bounds[2] == 0:
        return None
    begin, step = bounds[0], bounds[2]
    stride = "i" if abs(step) == 1 else f"i * {abs(step)}"
    index = f"{begin} - {stride}" if step < 0 else f"{begin} + {stride}" if begin else stride
    return f"write range({len(builtins.range(*bounds))}), and use {index} as the index"
