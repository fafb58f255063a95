"""Lines, scopes and declarations: what statement printing stands on.

Printing is one optimistic pass. It assumes that a handle parameter is used by its buffer alone, that a thread variable
is used only where it is launched, that every buffer is declared before use. Where the program says otherwise, that is
written down in `Learned`, and the program is printed once more; a walk ahead of every print would cost more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.ir import Buffer, IntImm, Node, PointerType, PrimType, Var, post_order_visit
from loopwright.ir.buffer import DEFAULT_ALIGNMENT, stored_dtype
from loopwright.runtime.dtype import INT32
from loopwright.script.printer.data import DataPrinter
from loopwright.script.printer.literals import quote
from loopwright.script.printer.options import Options


class EnoughLines(Exception):
    """The excerpt is long enough."""


class Learned:
    """What earlier passes over the program found out."""

    def __init__(self) -> None:
        self.exposed: set[Var] = set()  # handle parameters that the body uses
        self.roaming: set[Var] = set()  # thread variables used outside their launch, or launched twice
        self.aliases: dict[Var, list[Buffer]] = {}  # pointer → undeclared buffers that look through it

    @property
    def size(self) -> int:
        return len(self.exposed) + len(self.roaming) + sum(map(len, self.aliases.values()))


class ScopePrinter(DataPrinter):
    """Emit lines; define names for the scope they are visible in; declare buffers."""

    def __init__(self, options: Options, learned: Learned | None = None) -> None:
        super().__init__(options)
        self.learned = learned if learned is not None else Learned()
        self.lines: list[str] = []
        self.indent = ""
        self.max_lines = options.max_lines
        self.top: list[str] = []  # declarations of what nothing defines
        self.frames: list[list[Node]] = [[]]
        self.hidden: set[Var] = set()  # handle parameters that stand behind a buffer
        self.launched: set[Var] = set()

    def line(self, text: str) -> None:
        if self.max_lines is not None and len(self.lines) >= self.max_lines:
            raise EnoughLines
        self.lines.append(self.indent + text)

    @contextmanager
    def scope(self, indent: bool = True) -> Iterator[None]:
        """Names defined inside end with it."""
        self.frames.append([])
        self.names.enter()
        before = self.indent
        if indent:
            self.indent += " " * self.options.indent_spaces
        yield
        self.indent = before
        self.names.leave()
        for node in self.frames.pop():
            del self.texts[node]

    def define(self, node: Node, text: str) -> None:
        """From here to the end of the scope, `node` is written as `text`."""
        if node not in self.texts:
            self.frames[-1].append(node)
        self.texts[node] = text

    def define_var(self, var: Var) -> str:
        """A name for `var` in this scope."""
        name = self.names.fresh(self.hint(var))
        self.define(var, name)
        return name

    def declare_vars(self, variables: list[Var]) -> None:
        """One line that makes the variables, which stand for sizes and the like."""
        if variables:
            values = ", ".join([self.var_creation(var) for var in variables])
            self.line(f"{', '.join([self.define_var(var) for var in variables])} = {values}")

    # --- what nothing defines ---

    def undefined(self, node: Var | Buffer) -> str:
        if isinstance(node, Buffer):
            return self._undefined_buffer(node)
        learned = self.learned
        if node in self.hidden:
            learned.exposed.add(node)
        if node in self.launched:
            learned.roaming.add(node)
        result = super().undefined(node)
        self.top.append(f"{result} = {self.var_creation(node)}")
        return result

    def _undefined_buffer(self, buffer: Buffer) -> str:
        answer = self.learned.aliases.setdefault(buffer.data, [])
        # Where its pointer is visible, the next pass declares the buffer right behind that pointer.
        if buffer.data in self.texts and not any(other is buffer for other in answer):
            answer.append(buffer)
            return super().undefined(buffer)
        result = super().undefined(buffer)
        arguments = self.buffer_arguments(buffer, result, everywhere=True)
        self.top.append(f"{result} = {self.prefix}.Buffer({arguments})")
        return result

    def declare_aliases(self, var: Var) -> None:
        """Declare the buffers that look through the pointer `var` and are declared nowhere."""
        for buffer in self.learned.aliases.get(var, ()):
            if buffer not in self.texts:
                name = self.names.fresh(self.hint(buffer), "buffer")
                arguments = self.buffer_arguments(buffer, name)
                self.line(f"{name} = {self.prefix}.Buffer({arguments})")
                self.define(buffer, name)

    # --- buffers ---

    def buffer_arguments(self, buffer: Buffer, name: str, show_dtype: bool = False, everywhere: bool = False) -> str:
        """The arguments that make `buffer`; variables that it defines are declared or become its attributes.

        With `everywhere`, they are declared at the top and for the whole text.
        """
        keywords: list[str] = []
        result: list[tuple[Var, str]] = []  # what is known by the buffer's attributes afterwards
        to_declare: dict[Var, None] = {}
        strings: dict[Var, str] = {}
        index_dtype = buffer.shape[0].dtype if buffer.shape else INT32
        counts = _var_counts(buffer)

        def is_new(var: object) -> bool:
            return type(var) is Var and var not in self.texts and counts[var] == 1

        for axis, stride in enumerate(buffer.strides):
            if is_new(stride) and stride.dtype is INT32:
                strings[stride] = quote(stride.name)  # type: ignore[index,attr-defined]
                result.append((stride, f"{name}.strides[{axis}]"))  # type: ignore[arg-type]
        offset = buffer.elem_offset
        fresh_offset = is_new(offset) and offset.dtype is index_dtype
        if fresh_offset:
            result.append((offset, f"{name}.elem_offset"))  # type: ignore[arg-type]
        known = {var for var, _ in result}
        for var in counts:
            if var not in self.texts and var not in known:
                to_declare[var] = None
        if everywhere:
            for var in to_declare:
                self.undefined(var)
        else:
            self.declare_vars(list(to_declare))

        data = buffer.data
        if data in self.texts:
            keywords.append(f"data={self.texts[data]}")
        elif has_plain_pointer(buffer):
            result.append((data, f"{name}.data"))
            if buffer.scope() != "global":
                keywords.append(f"scope={quote(buffer.scope())}")
        else:
            if everywhere:
                self.undefined(data)
            else:
                self.declare_vars([data])
            keywords.append(f"data={self.texts[data]}")

        if buffer.strides:
            strides = [strings.get(stride) or self.text(stride) for stride in buffer.strides]  # type: ignore[call-overload]
            keywords.insert(int(bool(keywords) and keywords[0].startswith("data")), f"strides={tuple_text(strides)}")
        is_zero = isinstance(offset, IntImm) and offset.value == 0 and offset.dtype is index_dtype
        if not fresh_offset and (not is_zero or buffer.offset_factor != 1):
            position = len(keywords) - sum(word.startswith("scope") for word in keywords)
            keywords.insert(position, f"elem_offset={self.text(offset)}")
        if buffer.data_alignment != DEFAULT_ALIGNMENT:
            keywords.append(f"align={buffer.data_alignment}")
        if fresh_offset or buffer.offset_factor != 1:
            keywords.append(f"offset_factor={buffer.offset_factor}")
        if buffer.buffer_type != "default":
            keywords.append(f"buffer_type={quote(buffer.buffer_type)}")
        if buffer.axis_separators:
            keywords.append(f"axis_separators={list(buffer.axis_separators)}")

        parts = [tuple_text([self.text(extent) for extent in buffer.shape])]
        if show_dtype or buffer.dtype is not self.options.buffer_dtype:
            parts.append(quote(buffer.dtype))
        for var, text in result:
            if everywhere:
                self.texts[var] = text
            else:
                self.define(var, text)
        return ", ".join([*parts, *keywords])

    def declare_buffer(self, buffer: Buffer, function: str, first: str = "", show_dtype: bool = False) -> str:
        """`A = T.function(first, shape, …)`: emits the line, defines the buffer, returns its name."""
        name = self.names.fresh(self.hint(buffer), "buffer")
        arguments = self.buffer_arguments(buffer, name, show_dtype)
        self.line(f"{name} = {self.prefix}.{function}({first}{', ' if first else ''}{arguments})")
        self.define(buffer, name)
        self.declare_aliases(buffer.data)
        return name


def has_plain_pointer(buffer: Buffer) -> bool:
    """Whether a buffer declared without `data=` gets a pointer of this type."""
    annotation = buffer.data.type_annotation
    return (
        type(buffer.data) is Var
        and isinstance(annotation, PointerType)
        and isinstance(annotation.element_type, PrimType)
        and annotation.element_type.dtype is stored_dtype(buffer.dtype)
        and annotation.storage_scope != ""
    )


def tuple_text(items: list[str]) -> str:
    """A tuple display."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _var_counts(buffer: Buffer) -> dict[Var, int]:
    """How often each variable occurs in the shape, strides and offset."""
    counts: dict[Var, int] = {}

    def look(node: Node) -> None:
        if isinstance(node, Var):
            counts[node] = counts.get(node, 0) + 1

    for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
        if isinstance(expr, Var):
            look(expr)
        elif not isinstance(expr, IntImm):
            post_order_visit(expr, look)
    return counts
