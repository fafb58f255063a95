"""The program as data: types, expressions, buffers, statements, functions and modules, and how to walk them.

Start with `node.py` (how classes are made), then `expr/`, `buffer.py`, `stmt.py`, `function.py`; `visitor.py` shows
how to walk and rewrite, `operators.py` and `intrinsics.py` how Python code builds expressions, `op.py` what is known of
an intrinsic. `structural.py` and `structural_hash.py` compare programs, `verifier.py` says what a well-formed one is,
`json_form.py` saves them. Whole functions are changed by `specialize.py`, `bind_constants.py` and `clone.py`;
`passes.py` and `pass_context.py` are the pass manager. `ir_builder.py` writes statements from Python.
"""

import importlib
from typing import Any

from loopwright.ir.attributes import DictAttrs, attribute_value, python_value

# Not later: once its module is loaded, the name would mean the module.
from loopwright.ir.bind_constants import bind_constants
from loopwright.ir.buffer import (
    STORAGE_SCOPES,
    Buffer,
    BufferLoad,
    BufferRegion,
    MatchBufferRegion,
    WrongIndexCount,
    cell_region,
    decl_buffer,
    whole_region,
)
from loopwright.ir.conditions import conjuncts, is_true
from loopwright.ir.deep import deep
from loopwright.ir.env_func import EnvFunc
from loopwright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Any_,
    BinaryExpr,
    Broadcast,
    Call,
    Callee,
    Cast,
    CommReducer,
    CompareExpr,
    Dim,
    Div,
    Expr,
    ExprLike,
    FloatImm,
    FloorDiv,
    FloorMod,
    GlobalVar,
    HasExpr,
    IntImm,
    IterType,
    IterVar,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Producer,
    ProducerLoad,
    Ramp,
    Range,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
    as_expr,
    as_exprs,
    const,
    is_one,
    is_zero,
    pointer,
)
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.intrinsic_rules import register_intrin_lowering, register_intrin_rule
from loopwright.ir.node import Node, node
from loopwright.ir.op import CallEffect, Op, register_op, register_op_attr
from loopwright.ir.operators import cast, logical_and, logical_not, logical_or, match_types
from loopwright.ir.products import TooManyElements, product
from loopwright.ir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
    is_no_op,
    is_return,
    no_op,
    seq,
    stmt_list,
    stmt_seq,
)
from loopwright.ir.structural import (
    StructuralMismatch,
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
)
from loopwright.ir.structural_hash import structural_digest, structural_hash
from loopwright.ir.types import PointerType, PrimType, TupleType, Type
from loopwright.ir.visitor import (
    BufferRewriter,
    Rewriter,
    Visitor,
    any_node,
    any_statement,
    collect,
    collect_statements,
    post_order_visit,
    pre_order_visit,
    reads_memory,
    substitute,
    uses_var,
    variables_in,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import SourceLine as Span

PrimExpr = BaseExpr = Expr  # the names users know
BaseFunc = PrimFunc

# Parts that few programs need load when first asked for.
_LATER = {
    "instrument": "",
    "ir_transform": "functor",
    "load_json": "json_form",
    "make_node": "nodes_by_name",
    "register_config": "pass_config",
    "renew_defs": "renew",
    "save_json": "json_form",
    "transform": "",
    "verify_well_formed": "verifier",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'loopwright.ir' has no attribute {name!r}")
    module = importlib.import_module(f"loopwright.ir.{_LATER[name] or name}")
    value = globals()[name] = getattr(module, name) if _LATER[name] else module
    return value
