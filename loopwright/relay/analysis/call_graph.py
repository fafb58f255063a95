"""CallGraph: which function of a module calls which.

graph = CallGraph(mod)
graph.is_recursive("main"), graph.ref_count("f"), list(graph)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, NoSuchFunction
from loopwright.relay.expr import Function
from loopwright.relay.visitor import parts, post_order


class CallGraph:
    """The functions of a module, and for each those that it uses, with how often it does."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._calls: dict[str, Counter[str]] = {var.name: _used(function) for var, function in module.items()}

    def __getitem__(self, var: str | GlobalVar) -> dict[GlobalVar, int]:
        """The functions that `var` uses, with how often it names them."""
        return {self.module.get_global_var(name): count for name, count in self._calls[self._name(var)].items()}

    def __contains__(self, var: object) -> bool:
        return (var.name if isinstance(var, GlobalVar) else var) in self._calls

    def _name(self, var: str | GlobalVar) -> str:
        name = var.name if isinstance(var, GlobalVar) else var
        if name not in self._calls:
            raise NoSuchFunction(name, list(self._calls))
        return name

    def ref_count(self, var: str | GlobalVar) -> int:
        """How many functions call this one."""
        name = self._name(var)
        return sum(name in used for used in self._calls.values())

    def global_call_count(self, var: str | GlobalVar) -> int:
        """How many calls of other functions this one has."""
        return sum(self._calls[self._name(var)].values())

    def is_recursive(self, var: str | GlobalVar) -> bool:
        """Whether the function may come to call itself, directly or through others."""
        name = self._name(var)
        waiting = list(self._calls[name])
        seen = set(waiting)
        for other in waiting:
            if other == name:
                return True
            for further in self._calls.get(other, ()):
                if further not in seen:
                    seen.add(further)
                    waiting.append(further)
        return False

    def topological_order(self) -> list[GlobalVar]:
        """Every function, callers before those they call (as far as they do not call each other in turn)."""
        done: dict[str, None] = {}

        def visit(start: str) -> None:
            stack: list[tuple[str, Iterator[str]]] = [(start, iter(self._calls[start]))]
            entered.add(start)
            while stack:
                name, rest = stack[-1]
                following = next((other for other in rest if other not in entered and other in self._calls), None)
                if following is None:
                    stack.pop()
                    done[name] = None
                else:
                    entered.add(following)
                    stack.append((following, iter(self._calls[following])))

        entered: set[str] = set()
        for name in self._calls:
            if name not in entered:
                visit(name)
        return [self.module.get_global_var(name) for name in reversed(done)]

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.topological_order())

    def reachable_from(self, *names: str | GlobalVar) -> list[GlobalVar]:
        """The functions that these use, directly or through others, they themselves first."""
        waiting = [self._name(name) for name in names]
        seen = set(waiting)
        for name in waiting:
            for other in self._calls[name]:
                if other not in seen and other in self._calls:
                    seen.add(other)
                    waiting.append(other)
        return [self.module.get_global_var(name) for name in waiting]

    def print_var(self, var: str | GlobalVar) -> str:
        """One line that says what a function calls, and how often."""
        name = self._name(var)
        calls = "".join([f"\n  call {other}: {count}" for other, count in self._calls[name].items()])
        return f"@{name}, called by {self.ref_count(name)}{calls}"

    def __repr__(self) -> str:
        return "\n".join([self.print_var(var) for var in self])


def _used(function: object) -> Counter[str]:
    """The functions that one names; a loop function (PrimFunc) names none."""
    result: Counter[str] = Counter()
    if isinstance(function, Function):
        for expression in post_order(function):
            below: tuple[object, ...] = parts(expression)
            result.update(part.name for part in below if isinstance(part, GlobalVar))
    return result
