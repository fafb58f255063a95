"""use_tensor_intrinsics: a block that names a tensor intrinsic becomes the machine's way of computing it.

    with T.block("C_o"):                                       →    with T.block("C_o"):
        vi_o, vj_o = T.axis.remap("SS", [i_0, j_0])                     vi_o, vj_o = T.axis.remap("SS", [i_0, j_0])
        T.block_attr({"tensor_intrin": "dot_16x4_vnni"})                a = T.match_buffer(A[vi_o, 0:4], (4,), "uint8")
        for j_1, k in T.grid(16, 4):                                    b = T.match_buffer(B[vj_o * 16:…, 0:4], (16, 4))
            with T.block("C"):                                          c = T.match_buffer(C[vi_o, vj_o * 16:…], (16,))
                … C[vi, vj] + A[vi, vk] * B[vj, vk]                     c[0:16] = T.call_llvm_pure_intrin(…)

Until here the block holds what the intrinsic describes, so that schedules are proved, and programs evaluated, on what
they mean. The block is matched once more, and the intrinsic's parameters are bound to the parts of buffers found. What
all lanes of a warp do together is marked by an attribute, and written by `use_warp_intrinsics`.
Needs: blocks with their inits.  Leaves: no block with the annotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.analysis.thread_axes import has_warp_call, tag_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    IntImm,
    MatchBufferRegion,
    PrimFunc,
    Ramp,
    Rewriter,
    Stmt,
    StringImm,
    Var,
    any_statement,
    cast,
    const,
    decl_buffer,
    deep,
    substitute,
)
from loopwright.ir.annotations import TENSORIZED
from loopwright.ir.passes import function_pass
from loopwright.runtime.errors import LoopwrightError
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.tensor_intrinsics import Differs, Match, TensorIntrin, match_intrinsic


class NotWhatItNames(LoopwrightError, ValueError):
    """A block names a tensor intrinsic, but is not what the intrinsic describes.

    `tensorize` marks only blocks that match, and steps that would change them are refused; a mark written by hand, or
    an intrinsic registered anew with another meaning, is found here.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(4), B: T.Buffer(4)):
            with T.block("B"):
                T.block_attr({"tensor_intrin": "dot_16x4_vnni"})
                for i in range(4):
                    B[i] = A[i]

        loopwright.lower(f)
    """

    code = "LW0783"

    def __init__(self, block: Block, name: str, result: Differs) -> None:
        super().__init__(
            f"block {block.name_hint!r} names the tensor intrinsic {name!r}, but is not what it describes: {result}",
            at=block,
            hint=result.hint,
            fields={"intrinsic": name, "block": block.name_hint, "differs": result.what},
        )


class _UseTensorIntrinsics(Rewriter):
    def __init__(self, arguments: Sequence[Buffer]) -> None:
        self.arguments = arguments

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        name = realize.block.annotations.get(TENSORIZED)
        if name is None:
            return self.rebuild(realize)
        intrin = TensorIntrin.get(str(name))
        assert intrin is not None
        match = matched(realize.block, intrin, self.arguments)
        if has_warp_call(intrin.impl.body) or any_statement(intrin.impl.body, _launches_lanes):
            return realize.with_(block=_marked(realize.block, intrin))
        return realize.with_(block=implemented(realize.block, intrin, match))


def matched(block: Block, intrin: TensorIntrin, arguments: Sequence[Buffer]) -> Match:
    """What the parameters of the intrinsic are in a block; raises NotWhatItNames."""
    try:
        return match_intrinsic(block, intrin, arguments)
    except Differs as result:
        raise NotWhatItNames(block, intrin.name, result) from None


def _launches_lanes(node: Stmt) -> bool:
    return tag_of(node) == "threadIdx.x"


def _marked(block: Block, intrin: TensorIntrin) -> Block:
    """The loops of a block for whose instructions it is too early: `use_warp_intrinsics` writes them."""
    kept = {key: value for key, value in block.annotations.items() if key != TENSORIZED}
    body = AttrStmt(StringImm(intrin.name), TENSORIZED, const(1), block.body)
    return block.with_(body=body, annotations=kept)


def implemented(block: Block, intrin: TensorIntrin, match: Match) -> Block:
    """The block with the implementation of the intrinsic in place of its body."""
    root = intrin.impl.body
    assert isinstance(root, BlockRealize)
    parameters = [intrin.impl.buffer_map[param] for param in intrin.impl.params]
    values: dict[Var, Var] = {}
    for parameter in parameters:
        # Whatever variables the parameter declares (its memory, strides, offset) are this use's own.
        sizes = (*parameter.shape, *parameter.strides, parameter.elem_offset)
        for var in (parameter.data, *[size for size in sizes if isinstance(size, Var)]):
            values[var] = type(var)(var.name, var.type_annotation)
    own = {parameter: _with_offset(substitute(parameter, values)) for parameter in parameters}
    body = substitute(clone_definitions(root.block), values, own)
    sources = [region.buffer for region in match.regions]
    flat = _FlatAccesses(dict(zip(own.values(), sources, strict=True)))
    body = body.with_(body=flat.declared(flat.visit(body.body)))
    matched = [MatchBufferRegion(own[p], region) for p, region in zip(parameters, match.regions, strict=True)]
    notes = {key: value for key, value in body.annotations.items() if key not in block.annotations}
    kept = {key: value for key, value in block.annotations.items() if key != TENSORIZED}
    return block.with_(
        body=body.body,
        alloc_buffers=(*block.alloc_buffers, *body.alloc_buffers),
        match_buffers=(*block.match_buffers, *matched),
        annotations={**kept, **notes},
    )


def _with_offset(buffer: Buffer) -> Buffer:
    """The buffer, with a variable for where it begins."""
    if isinstance(buffer.elem_offset, Var):
        return buffer
    return buffer.with_(elem_offset=Var(f"{buffer.name}_elem_offset", buffer.elem_offset.dtype))


class _FlatAccesses(Rewriter):
    """Vectors that run on over the rows of a contiguous parameter go to a name of it with one dimension.

    `B.vload([0, 0], "int8x64")` of a (16, 4) buffer is how intrinsics load all of it; but an index past the end of its
    dimension means nothing to passes that look at dimensions one by one.
    """

    def __init__(self, parameters: Mapping[Buffer, Buffer]) -> None:
        # Each with the buffer that it is a part of.
        self.sources = {own: source for own, source in parameters.items() if own.ndim > 1 and not own.strides}
        self.flat: dict[Buffer, Buffer] = {}

    def declared(self, body: Stmt) -> Stmt:
        """`body` with the new names."""
        for buffer in self.flat.values():
            body = DeclBuffer(buffer, body)
        return body

    def _moved(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]] | None:
        last = indices[-1] if indices else None
        if buffer not in self.sources or not isinstance(last, Ramp):
            return None
        end = Analyzer().simplify(last.base + last.stride * (last.lanes - 1))
        if isinstance(end, IntImm) and end.value < buffer.shape[-1].value:  # type: ignore[attr-defined]
            return None
        new = self.flat.get(buffer)
        if new is None:
            # All of the memory, counted from its start.
            source = self.sources[buffer]
            size: Expr = source.elem_offset + 1
            for extent, stride in zip(source.shape, source.effective_strides(), strict=True):
                size = size + (extent - 1) * stride
            size = Analyzer().simplify(size)
            new = self.flat[buffer] = decl_buffer((size,), buffer.dtype, buffer.name, data=buffer.data)
        row: Expr = cast(buffer.elem_offset, last.base.dtype)
        for index, stride in zip(indices[:-1], buffer.effective_strides()[:-1], strict=True):
            row = row + index * stride
        return new, (Ramp(Analyzer().simplify(row + last.base), last.stride, last.lanes),)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        moved = self._moved(load.buffer, load.indices)
        return load if moved is None else BufferLoad._make(*moved, span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        moved = self._moved(store.buffer, store.indices)
        return store if moved is None else store.with_(buffer=moved[0], indices=moved[1])


@function_pass
@deep
def use_tensor_intrinsics(func: PrimFunc) -> PrimFunc:
    """A block that names a tensor intrinsic becomes the machine's way of computing it."""
    return func.with_(body=_UseTensorIntrinsics(func.argument_buffers()).visit(func.body))
