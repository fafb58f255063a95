"""Directives that name memory: buffers, matches, allocations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Buffer,
    BufferRealize,
    DeclBuffer,
    MatchBufferRegion,
    Stmt,
    StringImm,
    Var,
    const,
    pointer,
)
from loopwright.ir.buffer import stored_dtype
from loopwright.script.parser import directives as d
from loopwright.script.parser.errors import BadMatch, Misplaced, describe
from loopwright.script.parser.frames import BlockFrame, Frames

Wrap = Callable[[Stmt], Stmt | None]
Part: TypeAlias = Stmt | Wrap  # a statement, or what is put around those that follow
# What a directive becomes, by the parser (a subclass adds its own), the directive, the name it is given and its place.
Opener: TypeAlias = Callable[[Any, Any, str, ast.expr], tuple[object, Wrap]]
Namer: TypeAlias = Callable[[Any, Any, str, ast.expr], object]
Performer: TypeAlias = Callable[[Any, Any, ast.expr], None]


class Memory(Frames):
    """`T.Buffer`, `T.match_buffer`, `T.alloc_buffer`, `T.decl_buffer`, `T.allocate` and their kind."""

    def _buffer(self, spec: d.BufferSpec, name: str, node: ast.expr) -> Buffer:
        try:
            return spec.make(name, self.place(node))
        except Exception as error:
            raise self.failed(error, node) from error

    def _alloc_buffer(self, directive: d.AllocBuffer, name: str, node: ast.expr) -> Buffer:
        buffer = self._buffer(directive.spec, name, node)
        for frame in reversed(self.frames):
            if isinstance(frame, BlockFrame):
                frame.allocations.append(buffer)
                return buffer
        function = self.function_frame("T.alloc_buffer", node)
        if len(self.frames) > 1:
            raise Misplaced(
                "T.alloc_buffer",
                "inside a block or directly inside the function",
                self.standing(),
                self.place(node),
                "use T.decl_buffer here for memory of each iteration's own, or move T.alloc_buffer out of the loop",
            )
        function.root_allocations.append(buffer)
        return buffer

    def _match_buffer(self, directive: d.MatchSpec, name: str, node: ast.expr) -> Buffer:
        source, spec = directive.source, directive.spec
        if isinstance(source, Var):
            function = self.function_frame("T.match_buffer of a parameter", node)
            if len(self.frames) != 1:
                raise Misplaced(
                    "T.match_buffer of a parameter", "directly inside the function", self.standing(), self.place(node)
                )
            if not any(source is param for param in function.params):
                raise BadMatch(f"{source.name} is not a parameter of the function", self.place(node))
            if source in function.buffer_map:
                raise BadMatch(f"parameter {source.name} is matched to a buffer already", self.place(node))
            if source.dtype != "handle":
                raise BadMatch(f"parameter {source.name} is {source.dtype}, not a handle", self.place(node))
            if spec.shape is None:
                raise BadMatch("T.match_buffer of a parameter needs a shape", self.place(node))
            buffer = self._buffer(spec, name, node)
            function.buffer_map[source] = buffer
            return buffer
        frame = self.block_frame("T.match_buffer of a region", node)
        region = d.region_of(source)
        if region is None:
            raise BadMatch(
                f"T.match_buffer needs a parameter or a region, got {describe(source)}",
                self.place(node),
                "give a parameter of type T.handle, or A[0:16, 0:16] inside a block",
            )
        shape = spec.shape if spec.shape is not None else tuple([part.extent for part in region.region])
        dtype = spec.dtype if spec.dtype is not None else region.buffer.dtype
        buffer = self._buffer(spec._replace(shape=shape, dtype=dtype), name, node)
        frame.matches.append(MatchBufferRegion._make(buffer, region, span=self.place(node)))
        return buffer

    def _decl_buffer(self, directive: d.DeclSpec, name: str, node: ast.expr) -> tuple[Buffer, Wrap]:
        buffer = self._buffer(directive.spec, name or "buffer", node)
        span = self.place(node)
        if directive.spec.data is not None:
            return buffer, lambda body: DeclBuffer._make(buffer, body, span=span)
        return buffer, lambda body: Allocate._make(
            buffer.data, buffer.dtype, buffer.shape, const(True), DeclBuffer._make(buffer, body, span=span), span=span
        )

    def _allocate(self, spec: d.AllocateSpec, name: str, node: ast.expr) -> tuple[Var, Wrap]:
        var = _pointer(spec, name, spec.scope)
        span = self.place(node)
        return var, lambda body: Allocate._make(
            var, spec.dtype, spec.extents, spec.condition, body, dict(spec.annotations), span=span
        )

    def _allocate_const(self, spec: d.AllocateConstSpec, name: str, node: ast.expr) -> tuple[Var, Wrap]:
        var = _pointer(spec, name, "global")
        span = self.place(node)
        return var, lambda body: AllocateConst._make(
            var, spec.dtype, spec.extents, spec.data, body, dict(spec.annotations), span=span
        )

    def _realize(self, spec: d.RealizeSpec, name: str, node: ast.expr) -> tuple[None, Wrap]:
        buffer, span = spec.region.buffer, self.place(node)

        def close(body: Stmt) -> Stmt:
            stored = BufferRealize._make(buffer, spec.region.region, spec.condition, body, span=span)
            if spec.scope in ("", buffer.scope()):
                return stored
            # The memory is chosen where the region is stored, not where the buffer was declared.
            return AttrStmt._make(buffer, "realize_scope", StringImm(spec.scope), stored, span=span)

        return None, close

    openers: ClassVar[dict[type, Opener]] = {
        d.DeclSpec: _decl_buffer,
        d.AllocateSpec: _allocate,
        d.AllocateConstSpec: _allocate_const,
        d.RealizeSpec: _realize,
    }
    namers: ClassVar[dict[type, Namer]] = {
        d.BufferSpec: _buffer,
        d.AllocBuffer: _alloc_buffer,
        d.MatchSpec: _match_buffer,
    }


def _pointer(spec: d.AllocateSpec | d.AllocateConstSpec, name: str, scope: str) -> Var:
    if spec.type is not None:
        return Var(name or "v", spec.type)
    return pointer(name or "v", stored_dtype(spec.dtype), scope)
