"""Fates: what became of a loop or block that a handle still names, in the words of the message about it.

    loop i is no loop any more: it was split into i_0 and i_1 at blur.py:12, and i_1 into i_1_0 and i_1_1 at blur.py:13
      hint: use i_0, i_1_0 or i_1_1; sch.get_loops("C") gives i_0, i_1_0, i_1_1, j, k

Worked out from the versions of the program that the schedule keeps, when somebody reads the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.ir import Block, BlockRealize, Var
from loopwright.schedule.errors import HandleHistory
from loopwright.schedule.handles import MARKS, BlockKey, LoopRV, Mark, block_key
from loopwright.schedule.trace.trace import Instruction
from loopwright.schedule.view import View

Views = Mapping[str, View]

_DONE: Final = {"Split": "split", "Fuse": "fused", "Merge": "merged", "UnrollAndJam": "unrolled"}  # loops into loops
_SHOWN: Final = 3  # blocks whose loops a hint lists


def history_of_handle(
    gone: Var | BlockKey, changes: Sequence[tuple[Instruction, Views]], now: Views, is_loop: bool
) -> HandleHistory:
    """What the steps in `changes`, each with the versions before it, made of the loop or block `gone`."""
    history = _History(changes, now)
    return history.loop(gone) if is_loop and isinstance(gone, Var) else history.block(gone)


class _History:
    def __init__(self, changes: Sequence[tuple[Instruction, Views]], now: Views) -> None:
        self.steps = [inst for inst, _ in changes]
        self.versions = [*[views for _, views in changes], now]
        self.now = now

    def loop(self, var: Var) -> HandleHistory:
        if var in MARKS:
            location = "where a block stands now" if MARKS[var] is Mark.ROOT else "inside the readers of a block"
            hint = "only compute_at and its reverse take it"
            return HandleHistory(f"{var.name} is no loop, but a place: {location}", hint)
        step = self._last(var, is_loop=True)
        if step is None:
            return self._never(f"loop {var.name}")
        inst, parts, text = self.steps[step], self._parts(step), f"loop {var.name} is no loop any more"
        blocks = self._blocks_of(var, step)
        if parts is None:
            names = ", ".join([block.name_hint for block in blocks])
            result = f"made the loops of {names} anew" if names else "took it out"
            return HandleHistory(f"{text}: {inst}{_at(inst)} {result}", self._hint_of(blocks))
        message, living = self._told(step, parts)
        answer = [part.name for part in living]
        rest = self._hint_of(blocks)
        return HandleHistory(f"{text}: it was {message}", f"use {_either(answer)}; {rest}" if answer else rest, answer)

    def block(self, key: BlockKey) -> HandleHistory:
        name = key.name if isinstance(key, Var) else key
        step = self._last(key, is_loop=False)
        if step is None:
            return self._never(f"block {name}")
        path = next(view.index.blocks[key] for view in self._having(step, key))
        assert isinstance(path[-1], BlockRealize)
        inst = self.steps[step]
        text = f"block {path[-1].block.name_hint} is no longer in the program: {inst}{_at(inst)} took it out"
        return HandleHistory(text, self._hint_blocks())

    # --- looking back -----------------------------------------------------------------------------------------------

    def _last(self, key: Var | BlockKey, is_loop: bool) -> int | None:
        """The step that took it away: the last of the versions that have it comes right before."""
        for position in reversed(range(len(self.steps))):
            for view in self.versions[position].values():
                if key in (view.index.loops if is_loop else view.index.blocks):
                    return position
        return None

    def _having(self, position: int, key: BlockKey) -> list[View]:
        return [view for view in self.versions[position].values() if key in view.index.blocks]

    def _parts(self, step: int) -> list[Var] | None:
        """The loops that a step made of a loop; None where it did something else."""
        inst = self.steps[step]
        result = [handle.var for handle in inst.outputs if isinstance(handle, LoopRV)]
        return result if inst.kind in _DONE and result else None

    def _told(self, step: int, parts: Sequence[Var], name: str = "") -> tuple[str, list[Var]]:
        """What became of a loop and its parts, in words, and those that are there."""
        inst = self.steps[step]
        message = f"{name}{_DONE[inst.kind] if not name else ''} into {_both([part.name for part in parts])}{_at(inst)}"
        living: list[Var] = []
        for part in parts:
            if any([part in view.index.loops for view in self.now.values()]):
                living.append(part)
                continue
            later = self._last(part, is_loop=True)
            result = None if later is None else self._parts(later)
            if later is not None and result is not None:
                words, below = self._told(later, result, part.name)
                message += f", and {words}"
                living += below
        return message, list(dict.fromkeys(living))

    def _blocks_of(self, var: Var, step: int) -> list[Block]:
        """The blocks that were in the loop, as far as they are there."""
        result: list[Block] = []
        for view in self.versions[step].values():
            if var in view.index.loops:
                keys = [block_key(realize.block) for realize in view.blocks_below(view.loop(var))]
                for after in self.now.values():
                    paths = [after.index.blocks.get(after.current(key)) for key in keys]
                    ends = [path[-1] for path in paths if path is not None]
                    result += [end.block for end in ends if isinstance(end, BlockRealize)]
        return result

    # --- what there is ----------------------------------------------------------------------------------------------

    def _hint_of(self, blocks: Sequence[Block]) -> str:
        """How to get the loops of these blocks."""
        known = [text for text in [self._loops_text(block) for block in blocks[:_SHOWN]] if text]
        return "; ".join(known) or self._hint_blocks()

    def _loops_text(self, block: Block) -> str:
        for view in self.now.values():
            if block_key(block) in view.index.blocks:
                loops = ", ".join([loop.loop_var.name for loop in view.loops_of(block_key(block))])
                return f'sch.get_loops("{block.name_hint}") gives {loops or "no loops"}'
        return ""

    def _hint_blocks(self) -> str:
        names = [name for view in self.now.values() for name in view.block_names()[1:]]
        return f"the blocks are now {', '.join(names)}" if names else "there is no block any more"

    def _never(self, what: str) -> HandleHistory:
        blocks = [
            path[-1].block
            for view in self.now.values()
            for path in list(view.index.blocks.values())[1:]
            if isinstance(path[-1], BlockRealize)
        ]
        text = f"{what} is not in the program: it comes from another schedule, or from a step that was taken back"
        return HandleHistory(text, self._hint_of(blocks))


def _at(inst: Instruction) -> str:
    return f" at {inst.where}" if inst.where else ""


def _both(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
