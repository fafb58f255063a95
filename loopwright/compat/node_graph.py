"""Index maps as graphs of nodes: how traces of the peer carry them.

    {"root": 1, "nodes": [{"type_key": ""},
                          {"type_key": "tir.IndexMap", "attrs": {"initial_indices": "2", "final_indices": "4", …}},
                          {"type_key": "Array", "data": [3]}, {"type_key": "tir.Var", "attrs": {"name": "5", …}}, …]}

Every node is one row; an attribute is a text, which is the number of a row where the field holds a node; row 0 stands
for nothing. Maps made of variables, integers, + - * // %, min and max are read and written; others are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from loopwright.arith.index_map import IndexMap
from loopwright.ir import (
    Add,
    BinaryExpr,
    Cast,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Sub,
    Var,
    as_expr,
    const,
    substitute,
)
from loopwright.ir.operators import floordiv, floormod, maximum, minimum
from loopwright.runtime.json_text import JsonObject, read_json
from loopwright.schedule.trace.trace_json import UnreadableMap

_BINARY: Final[Mapping[str, Callable[[Expr, Expr], Expr]]] = {
    "tir.Add": lambda a, b: a + b,
    "tir.Sub": lambda a, b: a - b,
    "tir.Mul": lambda a, b: a * b,
    "tir.FloorDiv": floordiv,
    "tir.FloorMod": floormod,
    "tir.Min": minimum,
    "tir.Max": maximum,
}
_KEYS: Final[Mapping[type[Expr], str]] = {
    Add: "tir.Add",
    Sub: "tir.Sub",
    Mul: "tir.Mul",
    FloorDiv: "tir.FloorDiv",
    FloorMod: "tir.FloorMod",
    Min: "tir.Min",
    Max: "tir.Max",
}


def is_graph(value: object) -> TypeGuard[str]:
    """Whether a value of a trace is a graph of nodes."""
    return isinstance(value, str) and value.lstrip().startswith("{") and '"nodes"' in value


def read_map(text: str, known: Mapping[str, Any] | None = None) -> IndexMap:
    """The map that a graph of nodes holds; `known` are sampled numbers that it may name."""
    try:
        data = read_json(text)
        graph = _Graph(data["nodes"])
        root = data["root"]
        if graph.key(root) != "tir.IndexMap":
            raise UnreadableMap(f"the graph holds a {graph.key(root) or 'nothing'}, not a tir.IndexMap")
        inputs = [graph.var(row) for row in graph.rows(graph.field(root, "initial_indices"))]
        results = [graph.expr(row) for row in graph.rows(graph.field(root, "final_indices"))]
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, UnreadableMap):
            raise
        raise UnreadableMap(f"the graph of nodes is broken ({type(error).__name__}: {error})") from None
    # Names may be used twice, or be none that Python knows: what counts is the place.
    fresh = {var: Var(name) for var, name in zip(inputs, _names(inputs), strict=True)}
    sampled = {
        var: const(int((known or {})[var.name]), var.dtype)
        for var in graph.variables.values()
        if var not in fresh and var.name in (known or {})
    }
    strangers = [var.name for var in graph.variables.values() if var not in fresh and var not in sampled]
    if strangers:
        raise UnreadableMap(f"it uses {strangers[0]}, which is none of its indices")
    return IndexMap(tuple(fresh.values()), tuple([substitute(result, {**fresh, **sampled}) for result in results]))


def read_value(text: str) -> float | int | str:
    """A pad value that a graph of nodes holds: a number, or the text of a map that gives one."""
    built = read_map(text)
    (result,) = built.final_indices
    return result.value if isinstance(result, (IntImm, FloatImm)) else built.text


def write_map(given: IndexMap) -> str:
    """A map as a graph of nodes."""
    graph = _Writer()
    root = graph.row({"type_key": "tir.IndexMap"})
    initial = graph.array([graph.expr(var) for var in given.initial_indices])
    final = graph.array([graph.expr(result) for result in given.final_indices])
    graph.nodes[root]["attrs"] = {
        "final_indices": str(final),
        "initial_indices": str(initial),
        "inverse_index_map": "0",
    }
    data = {"root": root, "nodes": graph.nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.15.0"}}
    return json.dumps(data)


def _names(inputs: Sequence[Var]) -> list[str]:
    names = [var.name for var in inputs]
    plain = all([name.isidentifier() for name in names]) and len(set(names)) == len(names)
    return names if plain else [f"i{index}" for index in range(len(names))]


class _Graph:
    def __init__(self, nodes: Sequence[JsonObject]) -> None:
        self.nodes = nodes
        self.variables: dict[int, Var] = {}
        self.made: dict[int, Expr] = {}  # a row may stand in many places

    def key(self, row: int) -> str:
        return str(self.nodes[row]["type_key"])

    def field(self, row: int, name: str) -> int:
        return int(self.nodes[row]["attrs"][name])

    def rows(self, row: int) -> list[int]:
        return [int(item) for item in self.nodes[row].get("data", [])]

    def text(self, row: int, name: str) -> str:
        """A text: the field itself, or the row of texts that it names."""
        value = str(self.nodes[row]["attrs"][name])
        if value.isdigit() and self.key(int(value)) == "runtime.String":
            return str(self.nodes[int(value)].get("repr_str", ""))
        return value

    def var(self, row: int) -> Var:
        if self.key(row) not in ("tir.Var", "tir.SizeVar"):
            raise UnreadableMap(f"an index that it takes is a {self.key(row)}, not a variable")
        if row not in self.variables:
            self.variables[row] = Var(self.text(row, "name"))
        return self.variables[row]

    def expr(self, row: int) -> Expr:
        if row not in self.made:
            self.made[row] = self._expr(row)
        return self.made[row]

    def _expr(self, row: int) -> Expr:
        key = self.key(row)
        if key in ("tir.Var", "tir.SizeVar"):
            return self.var(row)
        if key == "IntImm":
            return const(int(self.nodes[row]["attrs"]["value"]))
        if key == "FloatImm":
            attrs = self.nodes[row]["attrs"]
            return const(float(attrs["value"]), str(attrs.get("dtype", "float32")))
        if key == "tir.Cast":  # indices are of one type here
            return self.expr(self.field(row, "value"))
        if key not in _BINARY:
            raise UnreadableMap(f"a {key or 'row of nothing'} is no part of an index")
        return as_expr(_BINARY[key](self.expr(self.field(row, "a")), self.expr(self.field(row, "b"))))


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[dict[str, object]] = [{"type_key": ""}]
        self.made: dict[Var, int] = {}

    def row(self, node: dict[str, object]) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def array(self, rows: Sequence[int]) -> int:
        return self.row({"type_key": "Array", **({"data": list(rows)} if rows else {})})

    def expr(self, expr: Expr) -> int:
        dtype = str(expr.dtype)
        if isinstance(expr, Var):
            if expr not in self.made:
                name = self.row({"type_key": "runtime.String", "repr_str": expr.name})
                kind = self.row({"type_key": "PrimType", "attrs": {"dtype": dtype}})
                attrs = {"dtype": dtype, "name": str(name), "span": "0", "type_annotation": str(kind)}
                self.made[expr] = self.row({"type_key": "tir.Var", "attrs": attrs})
            return self.made[expr]
        if isinstance(expr, IntImm):
            return self.row({"type_key": "IntImm", "attrs": {"dtype": dtype, "span": "0", "value": str(expr.value)}})
        if isinstance(expr, Cast):
            return self.expr(expr.value)
        if not isinstance(expr, BinaryExpr) or type(expr) not in _KEYS:
            raise UnreadableMap(f"{expr} is no part of an index")
        a, b = self.expr(expr.a), self.expr(expr.b)
        attrs = {"a": str(a), "b": str(b), "dtype": dtype, "span": "0"}
        return self.row({"type_key": _KEYS[type(expr)], "attrs": attrs})
