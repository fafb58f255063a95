"""`T` of the builder: the words of the script, which act at once or open frames. All others are the script's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from loopwright.ir import (
    Buffer as BufferNode,
)
from loopwright.ir import (
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    Stmt,
    Type,
    Var,
    as_expr,
    logical_and,
)
from loopwright.ir import While as WhileNode
from loopwright.script import tir as words
from loopwright.script.ir_builder.builder import NOWHERE, BuilderFrame, Engine, IRBuilder, Opened
from loopwright.script.parser import directives as d
from loopwright.script.parser.frames import Frame, FunctionFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopwright.ir import Range as RangeNode

PrimFuncFrame = BlockFrame = ForFrame = AttrFrame = LetFrame = AllocateFrame = DeclBufferFrame = BuilderFrame
BlockInitFrame = RealizeFrame = LaunchThreadFrame = AssertFrame = WhileFrame = IfFrame = ThenFrame = ElseFrame = (
    BuilderFrame
)


def __getattr__(name: str) -> Any:
    return getattr(words, name)


# --- functions ----------------------------------------------------------------------------------------------------


def prim_func(is_private: bool = False) -> BuilderFrame:
    """A function; `func_name`, `arg` and `func_ret` say what it is."""

    def opening(engine: Engine) -> Opened:
        frame = FunctionFrame("directly inside the function")
        outer, engine.frames = engine.frames, []

        def close(body: Stmt) -> PrimFunc:
            whole = engine.with_root(body, frame)
            engine.deferred.clear()
            attrs = dict(frame.attrs or {})
            if not is_private and frame.name:
                attrs.setdefault("global_symbol", frame.name)
            elif is_private and "global_symbol" in attrs:
                raise ValueError("prim_func: a private function has no global_symbol")
            engine.frames[:0] = outer
            return PrimFunc(frame.params, whole, frame.ret_type, frame.buffer_map, attrs)

        return frame, frame, close

    return BuilderFrame(opening)


def _function(what: str) -> FunctionFrame:
    return IRBuilder.current().engine.function_frame(f"T.{what}", NOWHERE)


def func_name(name: str) -> None:
    """The name of the function."""
    _function("func_name").name = name


def func_ret(ret_type: object) -> None:
    """What the function returns."""
    _function("func_ret").ret_type = IRBuilder.current().engine.as_type(ret_type, NOWHERE)


def func_attr(attrs: Mapping[str, object]) -> None:
    """Attributes of the function."""
    _perform(words.func_attr(attrs))


def arg(name: str, obj: Any) -> Any:
    """A parameter: a variable, or a buffer with a handle of its own."""
    frame = _function("arg")
    if isinstance(obj, d.BufferSpec):
        obj = obj.make(name)
    if isinstance(obj, BufferNode):
        handle = Var(f"{name}_handle", "handle")
        frame.params.append(handle)
        frame.buffer_map[handle] = IRBuilder.name(name, obj)
        return obj
    if not isinstance(obj, Var):
        obj = obj()
    frame.params.append(IRBuilder.name(name, obj))
    return obj


# --- directives ---------------------------------------------------------------------------------------------------


def _perform(spec: object) -> None:
    engine = IRBuilder.current().engine
    engine.performers[type(spec)](engine, spec, NOWHERE)


def _named(spec: object, name: str = "v") -> object:
    if isinstance(spec, BufferNode):
        return spec
    engine = IRBuilder.current().engine
    return engine.namers[type(spec)](engine, spec, name, NOWHERE)


def _scope(spec: object, name: str = "v") -> BuilderFrame:
    def opening(engine: Engine) -> Opened:
        bound, close = engine.openers[type(spec)](engine, spec, name, NOWHERE)
        return Frame("inside a with"), bound, close

    return BuilderFrame(opening)


def _performing(word: Callable[..., object]) -> Callable[..., None]:
    def perform(*args: object, **kwargs: object) -> None:
        _perform(word(*args, **kwargs))

    perform.__name__, perform.__doc__ = word.__name__, word.__doc__
    return perform


def _naming(word: Callable[..., object], name: str) -> Callable[..., Any]:
    def make(*args: object, **kwargs: object) -> Any:
        return _named(word(*args, **kwargs), name)

    make.__name__, make.__doc__ = word.__name__, word.__doc__
    return make


def _scoping(word: Callable[..., object], name: str) -> Callable[..., BuilderFrame]:
    def open_scope(*args: object, **kwargs: object) -> BuilderFrame:
        return _scope(word(*args, **kwargs), name)

    open_scope.__name__, open_scope.__doc__ = word.__name__, word.__doc__
    return open_scope


reads, writes = _performing(words.reads), _performing(words.writes)
where, block_attr = _performing(words.where), _performing(words.block_attr)
Buffer, alloc_buffer = _naming(words.Buffer.__call__, "buffer"), _naming(words.alloc_buffer, "buffer")
match_buffer, env_thread = _naming(words.match_buffer, "buffer"), _naming(words.env_thread, "v")
decl_buffer, allocate = _scoping(words.decl_buffer, "buffer"), _scoping(words.allocate, "v")
allocate_const, realize = _scoping(words.allocate_const, "v"), _scoping(words.realize, "")
attr, launch_thread = _scoping(words.attr, ""), _scoping(words.launch_thread, "")
Assert = _scoping(words.Assert, "")


def LetStmt(value: object, type_annotation: Type | None = None, *, var: Var | None = None) -> BuilderFrame:
    """A scope with a name for `value`."""
    return _scope(words.LetStmt(value, type_annotation, var=var))


class axis:
    """The iteration variables of a block."""

    spatial = S = staticmethod(_naming(words.axis.spatial, "v"))
    reduce = R = staticmethod(_naming(words.axis.reduce, "v"))
    scan = staticmethod(_naming(words.axis.scan, "v"))
    opaque = staticmethod(_naming(words.axis.opaque, "v"))
    remap = staticmethod(_naming(words.axis.remap, "v"))


def evaluate(value: object) -> None:
    """Compute `value` for its effect."""
    IRBuilder.current().add(words.evaluate(value))


def buffer_store(buffer: BufferNode, value: object, indices: Sequence[object]) -> None:
    """The assignment `buffer[indices] = value`."""
    IRBuilder.current().add(words.buffer_store(buffer, value, indices))


def prefetch(buffer: BufferNode, bounds: Sequence[RangeNode | tuple[object, object]]) -> None:
    """Ask for a region of `buffer` to be brought near."""
    IRBuilder.current().add(words.prefetch(buffer, bounds))


# --- blocks, loops, branches --------------------------------------------------------------------------------------


def block(name: str = "", no_realize: bool = False) -> BuilderFrame:
    """A block, the unit that schedules move."""

    def opening(engine: Engine) -> Opened:
        frame, close = engine.open_block(words.block(name, no_realize), NOWHERE)  # type: ignore[arg-type]
        return frame, frame, close

    return BuilderFrame(opening)


def init() -> BuilderFrame:
    """The start value of the block's reduction."""

    def opening(engine: Engine) -> Opened:
        frame, close = engine.open_init(NOWHERE)  # type: ignore[arg-type]
        return frame, None, close

    return BuilderFrame(opening)


def _loop(spec: d.LoopSpec, name: str) -> Callable[[Engine], Opened]:
    def opening(engine: Engine) -> Opened:
        var, low, extent, kind, thread, notes = engine.loop(spec, name, NOWHERE)
        engine.loops[var] = (low, extent)

        def close(body: Stmt) -> Stmt:
            del engine.loops[var]
            return For._make(var, low, extent, kind, body, thread, notes)

        return Frame("inside a loop"), var, close

    return opening


def _looping(word: Callable[..., d.LoopSpec]) -> Callable[..., BuilderFrame]:
    def loop(*args: object, **kwargs: object) -> BuilderFrame:
        return BuilderFrame(_loop(word(*args, **kwargs), "i"))

    loop.__name__, loop.__doc__ = word.__name__, word.__doc__
    return loop


serial, parallel, vectorized = _looping(words.serial), _looping(words.parallel), _looping(words.vectorized)
unroll, thread_binding = _looping(words.unroll), _looping(words.thread_binding)


def grid(*extents: object) -> BuilderFrame:
    """A nest of serial loops, outermost first."""
    names = "ijklmn"
    return BuilderFrame(*[_loop(words.serial(extent), names[k % 6]) for k, extent in enumerate(extents)])


def While(condition: object) -> BuilderFrame:
    """A loop that runs as long as the condition holds."""
    test: Expr = logical_and(condition)
    return BuilderFrame(lambda engine: (Frame("inside a while loop"), None, lambda body: WhileNode(test, body)))


class _Branches(Frame):
    """The two cases of an `If`, as they are filled."""

    then: Stmt | None = None
    otherwise: Stmt | None = None


def If(condition: object) -> BuilderFrame:
    """A choice; `Then` and `Else` frames inside it say what runs."""
    test = logical_and(as_expr(condition))

    def opening(engine: Engine) -> Opened:
        frame = _Branches("inside an if")

        def close(body: Stmt) -> Stmt:
            if frame.then is None:
                raise ValueError("If: nothing stands in `with T.Then():`")
            return IfThenElse(test, frame.then, frame.otherwise)

        return frame, None, close

    return BuilderFrame(opening)


def _branch(case: str) -> BuilderFrame:
    def opening(engine: Engine) -> Opened:
        owner = engine.frames[-1] if engine.frames else None
        if not isinstance(owner, _Branches):
            raise ValueError(f"{case}: it belongs directly inside `with T.If(condition):`")
        if getattr(owner, "then" if case == "Then" else "otherwise") is not None:
            raise ValueError(f"{case}: the If has one already")

        def close(body: Stmt) -> None:
            if case == "Then":
                owner.then = body
            else:
                owner.otherwise = body

        return Frame(f"inside {case}"), None, close

    return BuilderFrame(opening)


def Then() -> BuilderFrame:
    """What runs when the condition of the If holds."""
    return _branch("Then")


def Else() -> BuilderFrame:
    """What runs when it does not."""
    return _branch("Else")
