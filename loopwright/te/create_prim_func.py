"""create_prim_func: a graph of tensors becomes one function, a loop nest with a block for every compute.

    A = te.placeholder((n, l), name="A")            for i, j, k in T.grid(n, m, l):
    k = te.reduce_axis((0, l), name="k")                with T.block("C"):
    C = te.compute((n, m), lambda i, j:       →             v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
        te.sum(A[i, k] * B[k, j], axis=k),                  with T.init():
        name="C")                                               C[v_i, v_j] = T.float32(0)
                                                            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

Every compute gets variables of its own, so axes and expressions may be shared freely between computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.ir import (
    AssertStmt,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    IntImm,
    PrimFunc,
    Stmt,
    Var,
    const,
    deep,
    no_op,
    seq,
    variables_in,
)
from loopwright.ir.machine_intrinsics import call_error
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.te.assumed_sizes import ASSUMED, fit_together
from loopwright.te.extern import ExternOp
from loopwright.te.function_in_making import FunctionInMaking
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.lower_body import IndexTypes
from loopwright.te.lower_compute import compute_nest, layout_free
from loopwright.te.lower_extern import lower_extern
from loopwright.te.lower_scan import lower_scan, place_inits
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.order import dependencies, in_order
from loopwright.te.scan import ScanOp
from loopwright.te.tensor import Operation, Tensor
from loopwright.te.tensor_compute import TensorComputeOp


class MissingPlaceholder(LoopwrightError, ValueError):
    """The function would read an input that is not among its parameters.

    For example:

        from loopwright import te

        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1, name="B")
        te.create_prim_func([B])  # [A, B] are its parameters
    """

    code = "LW0416"

    def __init__(self, missing: Mapping[Tensor, str], given: Sequence[str]) -> None:
        names = list(missing)
        message = ", ".join([f"{tensor.name} (read by {reader})" for tensor, reader in missing.items()])
        plural = len(names) > 1
        super().__init__(
            f"create_prim_func: placeholder{'s' * plural} {message} {'are' if plural else 'is'} not in the list "
            f"[{', '.join(given)}]",
            hint="the list gives the parameters of the function: add " + ", ".join([tensor.name for tensor in names]),
            fields={"missing": [tensor.name for tensor in names]},
        )


class NoOutput(LoopwrightError, ValueError):
    """None of the tensors given is computed, so the function would do nothing.

    For example:

        from loopwright import te

        A = te.placeholder((4,), name="A")
        te.create_prim_func([A])
    """

    code = "LW0417"

    def __init__(self, given: Sequence[str]) -> None:
        super().__init__(
            f"create_prim_func: [{', '.join(given)}] holds no output: none of the tensors is computed",
            hint="the list gives inputs and outputs: add the tensor that te.compute returned",
        )


class UndefinedVariable(LoopwrightError, ValueError):
    """The function would use a variable that no parameter gives a value.

    A symbol gets its value from a parameter: a tensor that has it in one of its dimensions, or the variable itself in
    the list.

    For example:

        from loopwright import te

        n = te.var("n")
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + n, name="B")
        te.create_prim_func([A, B])  # nothing gives n a value: [A, B, n] would
    """

    code = "LW0418"

    def __init__(self, var: Var, user: str) -> None:
        super().__init__(
            f"create_prim_func: {user} uses the variable {var.name}, which has no value: no parameter has it in its "
            "shape",
            hint=f"add {var.name} to the list to make it a parameter",
            fields={"variable": var.name, "user": user},
        )


class BadFunctionArgument(LoopwrightError, TypeError):
    """Something in the list given to `create_prim_func` cannot be a parameter, or is given twice; or a name is no text.

    For example:

        from loopwright import te

        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1, name="B")
        te.create_prim_func([A, B.op])
    """

    code = "LW0419"

    def __init__(self, what: int | str, problem: str, hint: str) -> None:
        """`what` is wrong: a place in the list, or in words."""
        message = f"entry {what} of the list" if isinstance(what, int) else what
        super().__init__(f"create_prim_func: {message} {problem}", hint=hint)


@deep
def create_prim_func(
    ops: Tensor | Sequence[Tensor | Var], index_dtype_override: str | DataType | None = None, *, name: str = "main"
) -> PrimFunc:
    """The function that computes every computed tensor in `ops` from the placeholders in `ops`.

    The order of the list is the order of the parameters; a variable in it becomes a scalar parameter. Tensors that are
    needed but not listed live inside the function. Loops and indices have the type of the shapes, unless
    `index_dtype_override` gives another. `where=` of a reduction guards its updates; `init=` is its start value.
    The function is compiled as `name`.
    """
    if not isinstance(name, str) or not name:
        raise BadFunctionArgument(f"the name {name!r}", "names no function", 'give a text, such as name="add"')
    arguments = _check_arguments(ops)
    result = function_of(arguments, FunctionInMaking(IndexTypes(index_dtype_override, arguments)))
    return result if name == "main" else result.with_attr("global_symbol", name)


def function_of(
    arguments: Sequence[Tensor | Var],
    making: FunctionInMaking,
    bound: Mapping[Tensor, Buffer] | None = None,
    also: Sequence[Operation] = (),
) -> PrimFunc:
    """The function of `arguments`; tensors in `bound` have these buffers, and `also` is computed for nobody."""
    return _Function(arguments, making, bound or {}, also).build()


def _check_arguments(ops: object) -> list[Tensor | Var]:
    given = list(ops) if isinstance(ops, Sequence) else [ops]
    arguments: dict[Tensor | Var, None] = {}
    for position, argument in enumerate(given):
        if isinstance(argument, Operation):
            raise BadFunctionArgument(position, f"is the operation {argument.name}", "give its tensors: op.output(0)")
        if not isinstance(argument, (Tensor, Var)):
            what = f"is {type(argument).__name__} {argument!r}"
            raise BadFunctionArgument(position, what, "give te tensors, or variables for scalar parameters")
        if argument in arguments:
            raise BadFunctionArgument(position, f"repeats {argument.name}", "give each parameter once")
        arguments[argument] = None
    if all(isinstance(argument, Var) or isinstance(argument.op, PlaceholderOp) for argument in arguments):
        raise NoOutput([argument.name for argument in arguments])
    return list(arguments)


class _Function:
    """One function in the making."""

    def __init__(
        self,
        arguments: Sequence[Tensor | Var],
        making: FunctionInMaking,
        bound: Mapping[Tensor, Buffer],
        also: Sequence[Operation],
    ) -> None:
        self.arguments, self.making, self.bound = arguments, making, bound
        self.order = in_order([*[item.op for item in arguments if isinstance(item, Tensor)], *also], dependencies)

    def build(self) -> PrimFunc:
        self.check_placeholders()
        making = self.making
        params: list[Var] = []
        buffer_map: dict[Var, Buffer] = {}
        defined: set[Var] = set()
        for argument in self.arguments:
            if isinstance(argument, Var):
                params.append(argument)
                defined.add(argument)
                continue
            buffer = self.bound.get(argument) or making.declare(argument)
            making.buffers[argument] = buffer
            params.append(Var(f"var_{buffer.name}", "handle"))
            buffer_map[params[-1]] = buffer
            given = (*buffer.shape, *buffer.strides, buffer.elem_offset)
            for size in given:  # a call solves sizes such as 8 * m for their variables, or build says that it cannot
                defined.update([size] if isinstance(size, Var) else variables_in(size))

        inits = place_inits(self.order, self.arguments)
        nests: list[Stmt] = []
        for op in self.order:
            if isinstance(op, TensorComputeOp):
                # Without a schedule it is computed by what the intrinsic means.
                tensors = [op.output(k) for k in range(op.num_outputs)]
                for tensor in tensors:
                    making.buffer_of(tensor)
                plain = op.plain()
                making.buffers.update({plain.output(k): making.buffers[tensor] for k, tensor in enumerate(tensors)})
                nests.append(compute_nest(making, plain))
            elif isinstance(op, ComputeOp):
                steps = inits.steps_of(op, making)
                for tensor in [op.output(k) for k in range(op.num_outputs)]:
                    making.buffer_of(tensor)
                nests.append(compute_nest(making, op, steps))
            elif isinstance(op, ScanOp):
                nests.append(lower_scan(making, op, inits))
            elif isinstance(op, ExternOp):
                nests.append(lower_extern(making, op))
            elif isinstance(op, HybridOp):
                from loopwright.te.hybrid.lower import lower_hybrid  # needs the script's parser: loads when needed

                nests.append(lower_hybrid(making, op))
            elif not isinstance(op, PlaceholderOp):
                raise NotBuilt(f"create_prim_func of {type(op).__name__} {op.name}", "use te.compute")
        for var, user in making.used.items():
            if var not in defined:
                raise UndefinedVariable(var, user)

        checks = self.size_checks(list(buffer_map.values()))
        root = Block((), (), (), "root", seq([*checks, *nests]), alloc_buffers=tuple(making.allocated))
        attrs: dict[str, object] = {"global_symbol": "main", "tir.noalias": True}
        free = [tensor for op in self.order for tensor in layout_free(op)]
        if free:
            positions = [k for k, argument in enumerate(self.arguments) if isinstance(argument, Tensor)]
            attrs["layout_free_buffers"] = [k for k in positions if any(self.arguments[k] is tensor for tensor in free)]
        return PrimFunc(params, BlockRealize((), const(True), root), None, buffer_map, attrs)

    def size_checks(self, buffers: Sequence[Buffer]) -> list[Stmt]:
        """What operations assumed of sizes that calls decide, asserted before anything runs."""
        named: dict[Expr, str] = {}
        for buffer in buffers:
            for k, size in enumerate(buffer.shape):
                named.setdefault(size, f"axis {k} of {buffer.name} is %lld")
        checks: list[Stmt] = []
        for op in self.order:
            assumed = op.attrs.get(ASSUMED, ())
            for one in assumed if isinstance(assumed, tuple) else ():
                sizes = [self.making.index.convert(size) for size in one.sizes]
                text = [
                    f"the other size is {size}" if isinstance(size, IntImm) else named.get(size, f"{size} is %lld")
                    for size in sizes
                ]
                shown = [size for size in sizes if not isinstance(size, IntImm)]
                message = call_error("SizesDoNotFit", f"{', '.join(text)}: {op.name} needs {one.needs}", *shown)
                checks.append(AssertStmt(fit_together(*sizes), message, no_op()))
        return checks

    def check_placeholders(self) -> None:
        listed = {argument.op for argument in self.arguments if isinstance(argument, Tensor)}
        missing: dict[Tensor, str] = {}
        for op in self.order:
            for tensor in op.dependencies:
                if isinstance(tensor.op, PlaceholderOp) and tensor.op not in listed:
                    missing.setdefault(tensor, op.name)
        if missing:
            raise MissingPlaceholder(missing, [argument.name for argument in self.arguments])

