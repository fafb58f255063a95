"""relay: models as graphs of operators, and the compiler that makes one native function of them.

    x = relay.var("x", shape=(1, 64))
    w = relay.var("w", shape=(10, 64))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w))))
    lib = relay.build(mod, target="llvm", params={"w": weights})

Read `expr.py` and `types.py` first, then `op/registry.py` (an operator is one class), `infer_type.py`, `transform/`
(one pass a file) and `lower/` (fused functions become kernels, a graph becomes launches of them). The layer `model/`
makes one native function of those. Names load when first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any as Anything  # relay.Any is a size

# Public name → module that holds it.
_HOMES = {
    "loopwright.relay.types": "AnyDim FuncType GlobalTypeVar IncompleteType RefType TensorType TypeCall "
    "TypeConstraint TypeKind TypeRelation TypeVar scalar_type",
    "loopwright.ir": "IRModule",
    "loopwright.ir.expr": "GlobalVar",
    "loopwright.ir.types": "TupleType Type",
    "loopwright.relay.type_functor": "TypeFunctor TypeMutator TypeVisitor",
    "loopwright.relay.expr": "Call Constant Expr Function If Let RefCreate RefRead RefWrite Tuple TupleGetItem "
    "TupleWrapper Var const var",
    "loopwright.relay.adt": "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar "
    "PatternWildcard TypeData",
    "loopwright.relay.prelude": "Prelude",
    "loopwright.relay.visitor": "ExprFunctor ExprMutator ExprVisitor bind",
    "loopwright.relay.scope_builder": "ScopeBuilder",
    "loopwright.relay.with_fields": "CallWithFields ConstantWithFields FunctionWithFields IfWithFields LetWithFields "
    "RefCreateWithFields RefReadWithFields RefWriteWithFields TupleGetItemWithFields TupleWithFields VarWithFields",
    "loopwright.relay.spans": "SequentialSpan SourceName Span",
    "loopwright.relay.text": "astext fromtext parse parse_expr",
    "loopwright.runtime.params": "load_param_dict save_param_dict",
    "loopwright.relay.errors": "DiagnosticError",
    "loopwright.relay.build_module": "build optimize",
    "loopwright.relay.executors": "create_executor",
    "loopwright.relay.namespaces": "Any annotation dyn image memory nn random vision",
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}
# Folders and files that are names themselves.
_MODULES = {
    "adt": "loopwright.relay.adt",
    "analysis": "loopwright.relay.analysis",
    "backend": "loopwright.relay.backend",
    "build_module": "loopwright.relay.build_module",
    "dataflow_pattern": "loopwright.relay.dataflow_pattern",
    "frontend": "loopwright.frontends",
    "loops": "loopwright.relay.loops",
    "op": "loopwright.relay.op",
    "prelude": "loopwright.relay.prelude",
    "qnn": "loopwright.relay.qnn",
    "quantize": "loopwright.relay.quantize",
    "testing": "loopwright.relay.testing",
    "transform": "loopwright.relay.transform",
    "ty": "loopwright.relay.types",
    "vm": "loopwright.relay.vm",
}

__all__ = [*_NAMES, *_MODULES]


def __getattr__(name: str) -> Anything:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name.startswith("_"):
        raise AttributeError(name)
    else:
        from loopwright.relay.op.registry import FUNCTIONS, load_all

        load_all()
        if name not in FUNCTIONS:
            from loopwright.runtime.guesses import no_attribute

            raise no_attribute("module 'loopwright.relay' has no attribute", name, [*__all__, *FUNCTIONS], {})
        value = FUNCTIONS[name]
    setattr(sys.modules[__name__], name, value)  # not globals(): a module may look at its attributes (compat does)
    return value


def __dir__() -> list[str]:
    from loopwright.relay.op.registry import FUNCTIONS, load_all

    load_all()
    return sorted([*__all__, *(name for name in FUNCTIONS if "." not in name)])
