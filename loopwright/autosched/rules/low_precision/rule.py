"""The rule for products and convolutions of bytes and halves: which way costs least, and that way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.decision import Decision, RuleKind
from loopwright.autosched.errors import NotWorthIt
from loopwright.autosched.facts import Access
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Entry, Program
from loopwright.autosched.rules.around import epilogue_length
from loopwright.autosched.rules.contraction import Contraction
from loopwright.autosched.rules.contraction.prologue import prologue_length
from loopwright.autosched.rules.low_precision.explain import explain, explain_band
from loopwright.autosched.rules.low_precision.im2col import Matrices, im2col, matrices_of, size_of
from loopwright.autosched.rules.low_precision.operands import Operands, needs_repacking, operands_of
from loopwright.autosched.rules.low_precision.plain_product import PlainProduct, expand, plain_product
from loopwright.autosched.rules.low_precision.row_band import Band, band_of
from loopwright.autosched.rules.low_precision.row_band_sizes import BandSizes, choose_band
from loopwright.autosched.rules.low_precision.row_band_steps import schedule_band
from loopwright.autosched.rules.low_precision.sizes import Size, Sizes, choose_sizes
from loopwright.autosched.rules.low_precision.steps import schedule_product
from loopwright.autosched.rules.low_precision.units import SMALL, Choice, choices
from loopwright.autosched.rules.whole_blocks import schedule_separately
from loopwright.ir import Buffer
from loopwright.schedule import BlockRV, Schedule

MOST_FEEDING = 4  # element-wise blocks before a GEMM (padding, quantisation)
MOST_PADDING = 32  # times as many products as there are


class LowPrecision:
    """Takes a product or convolution of small types, what makes its operands, and the element-wise blocks after it."""

    name = "low-precision GEMM"
    kind = RuleKind.LOW_PRECISION

    def take(self, pending: Sequence[Entry], program: Program) -> int:
        before = _feeding_length(pending, program)
        if before is None:
            return 0
        return before + 1 + epilogue_length(pending[before:], program)

    def schedule(
        self, sch: Schedule, entries: Sequence[Entry], program: Program, machine: Machine, decision: Decision
    ) -> None:
        before = _feeding_length(entries, program) or 0
        feeding = [entry.name for entry in entries[:before]]
        name, epilogue = entries[before].name, [sch.get_block(entry.name) for entry in entries[before + 1 :]]
        operands = _operands(entries[before])
        if operands is not None:
            early = _early(operands.product.row_operand, operands.product.column_operand, program, machine)
        else:
            matrices = _matrices(entries[before])
            assert matrices is not None
            early = _early(matrices.row_operand, matrices.column_operand, program, machine)
            result = choices(machine, matrices.types, early, matrices.has_zero_points)
            if not any(choice.unit is not None or matrices.has_zero_points for choice in result):
                raise NotWorthIt(f"the machine has no faster instruction for {' by '.join(matrices.types[:2])}")
            if _schedule_band(sch, matrices, feeding, epilogue, early, program, machine, decision):
                return
            epilogue = [im2col(sch, matrices, epilogue, early, machine.lanes(matrices.types[0]), machine.cores)]
            program = program.after(sch)
            operands = _operands(next(entry for entry in program.entries if entry.name == name))
            if operands is None:
                raise NotWorthIt("the operand has a single row or column: a GEMV, not a GEMM")
            _explain_matrices(matrices, decision)
        choice, sizes = _best(operands, bool(epilogue), early, program, machine)
        if sizes is not None:
            _check_filled(operands, sizes)
        plain = plain_product(sch, operands, choice, name, epilogue, program)
        if sizes is None:
            _in_plain_vectors(sch, plain, machine, decision)
            others = []
        else:
            others = schedule_product(sch, plain, sizes, machine, early[1])
            explain(plain, choice, sizes, early, machine, decision)
        for other in [*feeding, *plain.sums, *others]:
            schedule_separately(sch, other, plain.program, machine, decision)


def _check_filled(operands: Operands, sizes: Sizes) -> None:
    """Tiles that would hold next to nothing but padding are left to rules that need none."""
    product = operands.product
    real = product.m * product.n * product.k
    padded = prod(sizes.padded(product.m, product.n, product.k))
    if sizes.unit.is_tile and real and padded > MOST_PADDING * real:
        raise NotWorthIt(f"{real} products would be padded to {padded}")


def _is_small_product(entry: Entry) -> bool:
    operands = _operands(entry)
    result = operands if operands is not None else _matrices(entry)
    return result is not None and set(result.types[:2]) <= set(SMALL)


def _operands(entry: Entry) -> Operands | None:
    """The block as a product of two matrices as they lie; None when it is none."""
    result = operands_of(entry.facts) if entry.facts is not None else None
    return result if result is not None and result.is_einsum else None


def _matrices(entry: Entry) -> Matrices | None:
    return matrices_of(entry.facts) if entry.facts is not None else None


def _early(rows: Access, columns: Access, program: Program, machine: Machine) -> tuple[bool, bool]:
    """Whether the operands are constants, so that the compiler packs them."""
    is_early = [program.is_made_early(operand.buffer, machine.runs_here) for operand in (rows, columns)]
    return is_early[0], is_early[1]


def _schedule_band(
    sch: Schedule,
    matrices: Matrices,
    feeding: Sequence[str],
    epilogue: Sequence[BlockRV],
    early: tuple[bool, bool],
    program: Program,
    machine: Machine,
    decision: Decision,
) -> bool:
    """Do a convolution on bands of its image, if that is cheaper than a matrix of windows; whether it is done."""
    seen = bool(epilogue) and program.is_output(matrices.facts.write.buffer)  # sums that the caller sees too
    result = None if seen else _band(matrices, early, bool(epilogue), machine)
    if result is None:
        return False
    band, sizes = result
    sums: Sequence[str] = ()
    after = [*epilogue]
    if not matrices.is_plain:
        program, after, sums = expand(sch, matrices.facts.name, ("", ""), epilogue, program)
        entry = next(entry for entry in program.entries if entry.name == matrices.facts.name)
        plain = _matrices(entry)
        now = band_of(plain) if plain is not None else None
        if now is None:
            raise NotWorthIt(f"{entry.name} is not a convolution once zero points are taken out")
        band = now
    own = _feeding_of(band.image.buffer, feeding, matrices.facts.name, program)
    packing = schedule_band(sch, band, own, after, sizes, machine, program)
    explain_band(band, sizes, early[0], machine, decision)
    left = [name for name in feeding if name not in own]
    for other in [*left, *sums, *([] if early[0] else [packing])]:
        schedule_separately(sch, other, program, machine, decision)
    return True


def _band(
    matrices: Matrices, early: tuple[bool, bool], has_epilogue: bool, machine: Machine
) -> tuple[Band, BandSizes] | None:
    """A convolution as one on bands; None when it is none, or a matrix of windows costs less."""
    band = band_of(matrices)
    result = [choice.unit for choice in choices(machine, matrices.types, early, matrices.has_zero_points)]
    unit = next((unit for unit in result if unit is not None and unit.is_tile), None)
    sizes = choose_band(band, unit, machine) if band is not None and unit is not None else None
    if band is None or unit is None or sizes is None:
        return None
    rows, columns, k = (size_of(group) for group in (matrices.rows, matrices.columns, matrices.reduce))
    size = Size(rows, columns, k, band.batch, False, True, True, *early, has_epilogue)
    matrix = choose_sizes(size, unit, machine)
    moves = machine.moves
    each = k * bytes_of(unit.b) * moves.byte_unfolded + rows * moves.unfolded_sum
    copying = columns * band.batch * each / matrix.threads
    return (band, sizes) if sizes.cycles < matrix.cycles + copying else None


def _explain_matrices(result: Matrices, decision: Decision) -> None:
    rows, columns, k = (size_of(group) for group in (result.rows, result.columns, result.reduce))
    axes = [" × ".join(axis.name for axis in group) for group in (result.rows, result.columns, result.reduce)]
    decision.chose(
        f"GEMM of {rows} × {k} by {k} × {columns}",
        f"rows are {axes[0]}, columns {axes[1]}, and {axes[2]} is reduced; im2col copies the windows into a matrix",
    )


def _best(
    operands: Operands, has_epilogue: bool, early: tuple[bool, bool], program: Program, machine: Machine
) -> tuple[Choice, Sizes | None]:
    """The way that costs least, and its sizes; none for a product in plain vectors, which has its own rule."""
    product = operands.product
    result = choices(machine, operands.types, early, operands.has_zero_points)
    if not result:
        raise NotWorthIt(f"the machine has no faster instruction for {' by '.join(operands.types[:2])}")
    size = Size(
        product.m,
        product.n,
        product.k,
        product.batch,
        needs_repacking(product) and not early[0],
        product.row_stride > 0,
        product.row_operand.buffer not in program.parameters,
        early[0],
        early[1],
        has_epilogue or operands.has_zero_points,
    )
    costed = [
        (choice, choose_sizes(size.moving_a() if choice.types[0] else size, choice.unit, machine))
        for choice in result
        if choice.unit is not None
    ]
    if not costed:
        if min(product.m, product.n, product.k) < 2:
            raise NotWorthIt("the operand has a single row or column: a GEMV, not a GEMM")
        return result[0], None
    return min(costed, key=lambda pair: pair[1].cycles)


def _in_plain_vectors(sch: Schedule, plain: PlainProduct, machine: Machine, decision: Decision) -> None:
    """The product, now of plain operands, by the rule for those; what is before it is scheduled by itself."""
    entries = plain.program.entries
    at = next(index for index, entry in enumerate(entries) if entry.facts is plain.product.facts)
    first = next((index for index in range(at) if prologue_length(entries[index : at + 1], plain.program)), at)
    last = at + 1 + epilogue_length(entries[at:], plain.program)
    alone = [sch.get(block).name_hint for block in plain.converted if block is not None]
    blocks = entries[first:last]
    Contraction().schedule(sch, blocks, plain.program, machine, decision)
    decision.chose("plain vectors", "the machine has no instruction that is faster for these types")
    for name in alone:
        if name not in [entry.name for entry in blocks]:
            schedule_separately(sch, name, plain.program, machine, decision)


def _feeding_length(pending: Sequence[Entry], program: Program) -> int | None:
    """How many of the first blocks feed the GEMM after them, and nothing else; None when there is none.

    They are taken with it, since a rule for GEMMs of another kind would take them with it otherwise.
    """
    for length, entry in enumerate(pending[: MOST_FEEDING + 1]):
        if _is_small_product(entry):
            used = {before.name for before in pending[: length + 1]}
            read = [program.readers(buffer) for before in pending[:length] for buffer in before.writes]
            own = all(readers and {reader.name for reader in readers} <= used for readers in read)
            return length if own else None
        if entry.facts is None or not entry.facts.is_injective:
            return None
    return None


def _feeding_of(buffer: Buffer, feeding: Sequence[str], product: str, program: Program) -> list[str]:
    """Those of the blocks that make an operand of the GEMM, and nothing that others read, in their order."""
    known = [entry for entry in program.entries if entry.name in feeding]
    wanted, answer = {buffer}, [product]
    for entry in reversed(known):
        result = [other for other in entry.writes if other in wanted]
        if result and all(reader.name in answer for other in result for reader in program.readers(other)):
            answer.insert(0, entry.name)
            wanted.update(entry.reads)
    return [name for name in answer if name != product]
