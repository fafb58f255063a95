"""annotate, unannotate: notes on blocks and loops, for later passes and for people.

    for i in range(8): …     →     for i in T.serial(8, annotations={"pragma_unroll": 4}): …

A note changes no order and no value by itself, so there is nothing to prove.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir import BlockRealize, Expr, FloatImm, For, IntImm, PrimFunc, StringImm
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class BadAnnotation(ScheduleError, TypeError):
    """A note is not a text, a number, or a list or dictionary of these.

    Notes are printed, written to traces and read back, so they hold plain data only.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.annotate(sch.get_block("B"), "note", object())
    """

    code = "LW0212"

    def __init__(self, key: object, value: object, at: object) -> None:
        problem = f"the note {key!r} is {value!r} of type {type(value).__name__}"
        if not isinstance(key, str):
            problem = f"the key {key!r} is of type {type(key).__name__}, not a text"
        super().__init__(f"annotate: {problem}", at=at, hint="use texts, numbers, and lists or dictionaries of them")


class NoSuchAnnotation(ScheduleError, IndexError):
    """A note was to be taken away that the block or loop does not carry.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.unannotate(sch.get_block("B"), "note")
    """

    code = "LW0213"

    def __init__(self, key: str, keys: list[str], at: object) -> None:
        there = ", ".join(sorted(keys)) or "none"
        super().__init__(f"unannotate: there is no note {key!r}; there are: {there}", at=at)


def annotate(view: View, block_or_loop: BlockRealize | For, ann_key: str, ann_val: object) -> Step:
    """Add a note; one with that key stays as it is."""
    if not isinstance(ann_key, str):
        raise BadAnnotation(ann_key, ann_val, block_or_loop)
    value = _plain(ann_key, ann_val, block_or_loop)
    notes = _notes(block_or_loop)
    if ann_key in notes:
        return Step(view.function, Proof.ORDER_KEPT, at=block_or_loop)
    return Step(_with_notes(view, block_or_loop, {**notes, ann_key: value}), Proof.ORDER_KEPT, at=block_or_loop)


def unannotate(view: View, block_or_loop: BlockRealize | For, ann_key: str) -> Step:
    """Take a note away."""
    notes = _notes(block_or_loop)
    if ann_key not in notes:
        raise NoSuchAnnotation(ann_key, list(notes), block_or_loop)
    rest = {key: value for key, value in notes.items() if key != ann_key}
    return Step(_with_notes(view, block_or_loop, rest), Proof.ORDER_KEPT, at=block_or_loop)


def _plain(key: str, value: object, at: object) -> object:
    if isinstance(value, (str, bool, float)):
        return value
    if isinstance(value, int):
        return int(value)  # a sampled number is an int of its own class
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(key, item, at) for item in value]
    if isinstance(value, Mapping) and not isinstance(value, Expr) and all(isinstance(name, str) for name in value):
        return {name: _plain(key, item, at) for name, item in value.items()}
    raise BadAnnotation(key, value, at)


def _notes(target: BlockRealize | For) -> Mapping[str, object]:
    return target.annotations if isinstance(target, For) else target.block.annotations


def _with_notes(view: View, target: BlockRealize | For, notes: Mapping[str, object]) -> PrimFunc:
    if isinstance(target, For):
        return view.replaced(view.loop_path(target.loop_var), target.with_(annotations=notes))
    new = target.with_(block=target.block.with_(annotations=notes))
    return view.replaced(view.block_path(block_key(target.block)), new)
