"""Functions and modules as text."""

from __future__ import annotations

from loopwright.ir import (
    BlockRealize,
    Buffer,
    IntImm,
    IRModule,
    PrimFunc,
    PrimType,
    Stmt,
    TupleType,
    Var,
    any_statement,
)
from loopwright.ir.buffer import DEFAULT_ALIGNMENT
from loopwright.runtime.dtype import HANDLE, INT32, VOID
from loopwright.script.printer.literals import type_text
from loopwright.script.printer.names import identifier
from loopwright.script.printer.scopes import has_plain_pointer
from loopwright.script.printer.statements import StatementPrinter


class FunctionPrinter(StatementPrinter):
    """Write one function."""

    def function(self, func: PrimFunc, name: str) -> None:
        """The decorator, the signature and the body."""
        symbol = func.attrs.get("global_symbol")
        self.line(f"@{self.prefix}.prim_func" + ("(private=True)" if symbol is None else ""))
        matched: list[tuple[str, Buffer]] = []
        with self.scope(indent=False):
            params = [self._param(param, func, matched) for param in func.params]
            is_void = isinstance(func.ret_type, TupleType) and not func.ret_type.fields
            result = "" if is_void else f" -> {type_text(func.ret_type, self.prefix)}"
            self.line(f"def {name}({', '.join(params)}){result}:")
            with self.scope():
                self._contents(func, name, matched)

    def _param(self, param: Var, func: PrimFunc, matched: list[tuple[str, Buffer]]) -> str:
        buffer = func.buffer_map.get(param)
        if buffer is not None and self._is_simple(param, buffer):
            self.hidden.add(param)
            name = self.names.fresh(self.hint(buffer), "buffer")
            arguments = self.buffer_arguments(buffer, name, show_dtype=True)
            self.define(buffer, name)
            return f"{name}: {self.prefix}.Buffer({arguments})"
        name = self.define_var(param)
        if buffer is not None:
            matched.append((name, buffer))
        return f"{name}: {type_text(param.type_annotation, self.prefix, type(param) is not Var)}"

    def _is_simple(self, param: Var, buffer: Buffer) -> bool:
        """Whether the parameter can be written as the buffer it stands for."""
        annotation, offset = param.type_annotation, buffer.elem_offset
        index_dtype = buffer.shape[0].dtype if buffer.shape else INT32
        return (
            self.options.syntax_sugar
            and type(param) is Var
            and isinstance(annotation, PrimType)
            and annotation.dtype is HANDLE
            and param not in self.learned.exposed
            and all(isinstance(extent, IntImm) for extent in buffer.shape)
            and not buffer.strides
            and isinstance(offset, IntImm)
            and offset.value == 0
            and offset.dtype is index_dtype
            and buffer.scope() == "global"
            and buffer.data_alignment == DEFAULT_ALIGNMENT
            and buffer.offset_factor == 1
            and buffer.buffer_type == "default"
            and not buffer.axis_separators
            and buffer.data not in self.texts
            and has_plain_pointer(buffer)
        )

    def _contents(self, func: PrimFunc, name: str, matched: list[tuple[str, Buffer]]) -> None:
        attrs = {key: value for key, value in func.attrs.items() if key != "global_symbol" or value != name}
        if attrs:
            self.line(f"{self.prefix}.func_attr({self.mapping_text(attrs)})")
        for param, buffer in matched:
            self.declare_buffer(buffer, "match_buffer", param)
        for var in func.params:
            self.declare_aliases(var)
            if var in self.hidden:
                self.declare_aliases(func.buffer_map[var].data)
        position, indent = len(self.lines), self.indent
        body = func.body
        if isinstance(body, BlockRealize) and self.options.syntax_sugar and self._is_implicit_root(body):
            self.line(f'# with {self.prefix}.block("root"):')
            self.allocations(body.block)
            self.statement(body.block.body)
        else:
            self.statement(body)
        self.lines[position:position] = [indent + text for text in self.top]

    def _is_implicit_root(self, root: BlockRealize) -> bool:
        """Whether the parser puts this very block around the body again."""
        block = root.block
        plain = not (
            block.iter_vars
            or block.reads
            or block.writes
            or block.init is not None
            or block.match_buffers
            or block.annotations
            or block.name_hint != "root"
            or not isinstance(root.predicate, IntImm)
            or root.predicate.value != 1
            or root in self.marked
            or block in self.marked
        )
        if not plain or block.alloc_buffers:
            return plain
        inner = block.body
        if isinstance(inner, BlockRealize):
            return bool(inner.block.iter_vars)
        return _has_blocks(inner)


def module_functions(module: IRModule) -> list[tuple[str, PrimFunc]]:
    """The functions by name, `main` last."""
    functions = sorted(module.functions_items(), key=lambda item: (item[0] == "main", item[0]))
    return [(identifier(name, "main"), func) for name, func in functions]


def result_dtype(func: PrimFunc) -> str:
    """What a call of `func` returns."""
    return func.ret_type.dtype if isinstance(func.ret_type, PrimType) else VOID


def _has_blocks(body: Stmt) -> bool:
    return any_statement(body, lambda node: isinstance(node, BlockRealize))
