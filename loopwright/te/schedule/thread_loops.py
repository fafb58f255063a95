"""Loops on threads: each `bind` of a te schedule as a step of the engine, with what te says of thread axes checked.

A thread axis has one length in all that runs on it together, and as many threads as it was declared with. A reduce axis
may run on threads of a block: they add their parts one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from typing import Final

from loopwright.analysis.thread_axes import is_virtual_tag
from loopwright.arith import Analyzer
from loopwright.ir import Expr, For, IntImm, IterType, IterVar, Var, const, substitute
from loopwright.schedule import LoopRV
from loopwright.schedule import Schedule as Engine
from loopwright.te.schedule.errors import CannotBind, CannotMark
from loopwright.te.schedule.stage import Stage
from loopwright.te.tensor import dim_text

_THREADS: Final = 1024  # tried, where a condition chooses among them


@dataclass
class Bound:
    """A loop on threads, and what messages call it."""

    name: str
    tag: str
    loop: LoopRV
    extent: Expr


class ThreadLoops:
    """The loops that were put on threads so far."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.facts = Analyzer()
        self.bound: list[Bound] = []

    def bind(self, stage: Stage, axis: IterVar, loop: LoopRV, thread: IterVar) -> None:
        """Put one loop of a stage on the threads of an axis."""
        node = self.engine.get(loop)
        assert isinstance(node, For)
        tag, extent = thread.thread_tag, node.extent
        name = f"{axis.var.name} of {stage.name}"
        if axis.iter_type is IterType.CommReduce and not tag.startswith("threadIdx"):
            raise CannotBind(
                f"bind: {name} is an axis of the reduction, and the iterations of {tag} cannot wait for each other",
                hint='bind it to "threadIdx.x", or factor it out with rfactor and bind the data axis of the new stage',
            )
        self._check_declared(name, tag, extent, thread)
        self.bound.append(Bound(name, tag, loop, extent))
        self._check_lengths()
        self.engine.bind(loop, tag)

    def launch(self, stage: Stage, time: LoopRV, thread: IterVar) -> LoopRV:
        """Put a loop over threads around the steps of a scan; as many as the loops inside that are bound to them."""
        tag = thread.thread_tag
        if not tag.startswith("threadIdx"):
            raise CannotBind(
                f"env_threads: the steps of {stage.name} follow each other, and the iterations of {tag} cannot wait",
                hint='give threads of a block, such as te.thread_axis("threadIdx.x"), and bind the loops of each step',
            )
        inside = [item for item in self.bound if item.tag == tag and self._is_under(item.loop, time)]
        extent = thread.dom.extent if thread.dom is not None else inside[0].extent if inside else None
        if not isinstance(extent, IntImm):
            raise CannotBind(
                f"env_threads: it is not known how many threads {tag} run {stage.name}",
                hint=f'say so, te.thread_axis((0, 32), "{tag}"), or bind loops of its stages to them',
            )
        around = self.engine.add_thread_loop(time, tag, extent.value)
        self.bound.insert(0, Bound(f"env_threads of {stage.name}", tag, around, extent))
        return around

    def _is_under(self, loop: LoopRV, outer: LoopRV) -> bool:
        return any([item.loop_var is outer.var for item in self.engine.view().loops_to(loop.var)])

    def _check_declared(self, name: str, tag: str, extent: Expr, thread: IterVar) -> None:
        """The loop is as long as the axis was declared."""
        if thread.dom is None:
            return
        low, threads = thread.dom.min, thread.dom.extent
        if not (isinstance(low, IntImm) and low.value == 0):
            raise CannotBind(
                f"bind: the threads {tag} of {name} are numbered from {dim_text(low)}",
                hint=f'threads count from 0: te.thread_axis((0, {dim_text(extent)}), "{tag}")',
            )
        if not self.facts.can_prove_equal(threads, extent):
            raise CannotBind(
                f"bind: {name} runs {dim_text(extent)} times, and there are {dim_text(threads)} threads {tag}",
                hint=f"split the axis with nparts={dim_text(threads)}, and bind the outer loop",
            )

    def _check_lengths(self) -> None:
        """Loops on one thread axis are equally long within one nest; virtual threads are an axis for each loop."""
        seen: dict[tuple[Var, str], Bound] = {}
        for item in self.bound:
            if is_virtual_tag(item.tag):
                continue
            nest = self.engine.view().loops_to(item.loop.var)[0].loop_var
            other = seen.setdefault((nest, item.tag), item)
            if not self.facts.can_prove_equal(other.extent, item.extent):
                raise CannotBind(
                    f"bind: {item.name} runs {dim_text(item.extent)} times and {other.name} {dim_text(other.extent)} "
                    f"times, but both are bound to {item.tag}",
                    why="one thread axis has one size in all that runs on it together",
                    hint=f"split one of them, so that both run {dim_text(other.extent)} times",
                )


def storing_thread(stage: Stage, condition: Expr) -> dict[str, int]:
    """The first thread for which `set_store_predicate` holds, in a stage that is reduced over threads: its numbers.

    The result is one for all of them, so it does not matter who stores it, as long as one does.
    """
    facts = Analyzer()
    axes: dict[Var, Expr] = {}
    tags: list[str] = []
    for axis, attr in stage.iter_var_attrs.items():
        if attr.bind_thread is not None and axis.iter_type is IterType.CommReduce and axis in stage.leaf_iter_vars:
            axes[attr.bind_thread.var] = stage.sizes()[axis]
            tags.append(attr.bind_thread.thread_tag)
    counts = [size.value if isinstance(size, IntImm) else 1 for size in axes.values()]
    left: Expr | None = None
    for numbers in islice(product(*[range(count) for count in counts]), _THREADS):
        chosen: dict[Var, Expr] = {var: const(k, var.dtype) for var, k in zip(axes, numbers, strict=True)}
        result = facts.simplify(substitute(condition, chosen))
        if not isinstance(result, IntImm):
            left = result
        elif result.value:
            return dict(zip(tags, numbers, strict=True))
    names = " and ".join([var.name for var in axes])
    if left is None:
        raise CannotMark(
            f"set_store_predicate: {stage.name} is reduced over {names}, and no thread stores the result: "
            f"{stage.store_predicate} holds for none",
            hint=f"choose one of them, as in {next(iter(axes)).name}.equal(0)",
        )
    raise CannotMark(
        f"set_store_predicate: {stage.name} is reduced over {names}, and whether a thread stores the result depends on "
        f"more than its number: {left}",
        hint="choose a thread only, and put other conditions into the te.compute, with if_then_else",
    )


__all__ = ["ThreadLoops", "storing_thread"]
