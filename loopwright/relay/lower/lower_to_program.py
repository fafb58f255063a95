"""lower_to_program: a fused graph as a program of kernel launches.

    def @main(%x) { %0 = fn (…, Primitive=1) {…}(%x, w);  … }    →    Program: values, and launches that fill them

A call of a primitive function is a launch of its kernel, or, where it only reshapes, another view of the same memory.
`If` is a branch, a function that calls itself at its end (`loops.while_loop`) is a loop; both hand over tensors that
have a place each. Tuples exist while compiling only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loopwright import te
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Var as PrimVar
from loopwright.ir import as_expr, substitute
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.types import TupleType, Type
from loopwright.ir.visitor import variables_in
from loopwright.model.program import (
    Bind,
    Body,
    Branch,
    Carried,
    Copy,
    Launch,
    Program,
    Repeat,
    Require,
    Step,
    Value,
    View,
)
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.index_checks import IndexCheck, Sizes, checked_sizes, index_checks
from loopwright.relay.loop_form import calls, loop_form
from loopwright.relay.lower.concat_in_place import concat_in_place
from loopwright.relay.lower.lower_function import Lowered, decided_sizes
from loopwright.relay.lower.program_parts import Shared
from loopwright.relay.nested import Nested, fields, flat, single
from loopwright.relay.size_checks import SizeCheck, function_checks, node_of
from loopwright.relay.types import TensorType, is_any, known_sizes, type_text
from loopwright.relay.visitor import post_order


class _Writer:
    """The steps of one body, and the values that its expressions are."""

    def __init__(self, shared: Shared, around: _Writer | None = None) -> None:
        self.shared = shared
        self.around = around
        self.steps: list[Step] = []
        self.values: dict[Expr, Nested[Value]] = {}
        self.functions: dict[Expr, Function] = {}
        self.ranges: dict[tuple[object, ...], tuple[Value, Value]] = {}  # of index tensors that were looked at

    # What an expression is: a Value, or a list of them for a tuple.

    def of(self, expression: Expr) -> Nested[Value]:
        """The value of an expression, its steps written if they are not yet."""
        for each in self._order(expression):
            if self._found(each) is None:
                self.values[each] = self._write(each)
        return self._known(expression)

    def _order(self, expression: Expr) -> list[Expr]:
        """What has to be evaluated for `expression`, in order; what runs under a condition or a name comes later."""
        result: list[Expr] = []
        done: set[Expr] = set()
        stack: list[tuple[Expr, bool]] = [(expression, False)]
        while stack:
            each, ready = stack.pop()
            if ready:
                result.append(each)
            elif each not in done and self._found(each) is None:
                done.add(each)
                stack.append((each, True))
                if isinstance(each, Call):
                    stack.extend((arg, False) for arg in reversed(each.args))
                elif isinstance(each, Tuple):
                    stack.extend((part, False) for part in reversed(each.fields))
                elif isinstance(each, TupleGetItem):
                    stack.append((each.tuple_value, False))
        return result

    def _found(self, expression: Expr) -> Nested[Value] | None:
        writer: _Writer | None = self
        while writer is not None:
            if expression in writer.values:
                return writer.values[expression]
            writer = writer.around
        return None

    def _known(self, expression: Expr) -> Nested[Value]:
        """The value of an expression whose steps are written."""
        result = self._found(expression)
        assert result is not None
        return result

    def _function(self, expression: Expr) -> Function | None:
        if isinstance(expression, Function):
            return expression
        writer: _Writer | None = self
        while writer is not None:
            if expression in writer.functions:
                return writer.functions[expression]
            writer = writer.around
        return None

    def _write(self, expression: Expr) -> Nested[Value]:
        if isinstance(expression, Constant):
            return self.shared.constant(expression.data)
        if isinstance(expression, Tuple):
            return [self._known(part) for part in expression.fields]
        if isinstance(expression, TupleGetItem):
            return fields(self._known(expression.tuple_value))[expression.index]
        if isinstance(expression, Let):
            return self._let(expression)
        if isinstance(expression, If):
            return self._branch(expression)
        if isinstance(expression, Call):
            return self._call(expression)
        name = getattr(expression, "name_hint", type(expression).__name__)
        raise CannotCompile(f"{name} is no value that a compiled model can hold", at=None)

    def _let(self, let: Let) -> Nested[Value]:
        body: Expr = let
        while isinstance(body, Let):
            if isinstance(body.value, Function):
                self.functions[body.var] = body.value
            else:
                self.values[body.var] = self.of(body.value)
            body = body.body
        return self.of(body)

    def _call(self, call: Call) -> Nested[Value]:
        args = [self._known(arg) for arg in call.args]
        callee = self._named_function(call.op)
        if isinstance(callee, Function) and "Compiler" in callee.attrs:
            return self._external(call, callee, args)
        if isinstance(callee, Function) and "Primitive" in callee.attrs:
            return self._launch(call, callee, args)
        function = self._function(callee)
        called = getattr(callee, "name", None)
        if function is None and called is not None and self.shared.module is not None:
            result: object = self.shared.module[called]
            function = result if isinstance(result, Function) else None
        if function is None:
            raise CannotCompile("a value is called that is not known to be a function when compiling")
        if "Compiler" in function.attrs:
            return self._external(call, function, args)
        if isinstance(callee, Var) and calls(function.body, callee):
            return self._loop(callee, function, args)
        inner = _Writer(self.shared, self)
        inner.steps = self.steps  # an ordinary call runs where it stands
        for param, value in zip(function.params, args, strict=True):
            inner.values[param] = value
        return inner.of(function.body)

    def _named_function(self, callee: Expr) -> Expr:
        """What is called; `let f = fn …; f`, as a loop is written, is `f`."""
        while isinstance(callee, Let):
            if isinstance(callee.value, Function):
                self.functions[callee.var] = callee.value
            else:
                self.values[callee.var] = self.of(callee.value)
            callee = callee.body
        return callee

    def _launch(self, call: Call, function: Function, given: list[Nested[Value]]) -> Nested[Value]:
        result = self.shared.values_of(call.checked_type, "t")
        outputs, args = flat(result), flat(given)
        self.steps += self.shared.required(function_checks(function, call.args))
        self._check_indices(call, function, given)
        answer = checked_sizes(function.body)
        if answer is not None:
            self.shared.in_range[single(result)] = answer
        if "relay.reshape_only" in function.attrs and len(args) == 1 and len(outputs) == 1:
            self.steps.append(View(outputs[0], args[0]))
            return result
        kernel = self.shared.kernels.of(function)
        if kernel.decided:
            # Equal functions share a kernel; the sizes that this call of it decides have names of their own.
            own = replace(kernel, decided=decided_sizes(function.body))
            return self._launch_and_measure(own, args, result)
        name = str(call.span) if isinstance(call.span, str) else " + ".join(kernel.operators)
        pairs = [
            (i, o)
            for o, out in enumerate(outputs)
            for i, arg in enumerate(args)
            if arg.dtype == out.dtype and arg.shape == out.shape
        ]
        launch = Launch(kernel.func, (*args, *outputs), len(outputs), tuple(pairs), name)
        self.shared.functions[launch] = function
        self.steps.append(launch)
        return result

    def _external(self, call: Call, function: Function, given: list[Nested[Value]]) -> Nested[Value]:
        """Run what another compiler makes of a function; it may do with its arguments what it likes, but not alias."""
        kernel = self.shared.external(function)
        result = self.shared.values_of(call.checked_type, "t")
        outputs = flat(result)
        launch = Launch(kernel.func, (*flat(given), *outputs), len(outputs), (), kernel.name)
        self.shared.functions[launch] = function
        self.steps.append(launch)
        return result

    def _check_indices(self, call: Call, function: Function, given: list[Nested[Value]]) -> None:
        """The steps that look at the indices which a fused function trusts."""
        values = dict[Expr, Nested[Value]](zip(function.params, given, strict=True))

        def in_range(expression: Expr) -> Sizes | None:
            value = values.get(expression)
            return self.shared.in_range.get(value) if isinstance(value, Value) else None

        checks, known = index_checks(function, call.args, in_range)
        self.steps += self.shared.required(known, "IndexOutOfRange")
        for check in checks:
            least, greatest = self._range_of(check, flat([values[param] for param in check.params]), call)
            for rule in check.rules:
                for value, message, is_least in ((least, rule.below, True), (greatest, rule.above, False)):
                    index = te.var("index", "int64")
                    size = rule.size.astype("int64")
                    holds = index < size if not is_least else index >= -size if rule.from_end else index >= 0
                    read = ((index, value, rule.entry),)
                    self.steps.append(Require(holds, message, (index, size), read, "IndexOutOfRange"))

    def _range_of(self, check: IndexCheck, args: list[Value], call: Call) -> tuple[Value, Value]:
        """The least and greatest indices of a tensor; one that was looked at before is not looked at again."""
        kernel = self.shared.kernels.of(check.function)
        key = (kernel.name, *args)
        writer: _Writer | None = self
        while writer is not None:
            if key in writer.ranges:
                return writer.ranges[key]
            writer = writer.around
        least, greatest = flat(self.shared.values_of(check.function.body.checked_type, "range"))
        launch = Launch(kernel.func, (*args, least, greatest), 2, (), f"{node_of(call)}: the range of its indices")
        self.shared.functions[launch] = check.function
        self.steps.append(launch)
        self.ranges[key] = least, greatest
        return least, greatest

    def _launch_and_measure(self, kernel: Lowered, args: list[Value], result: Nested[Value]) -> Nested[Value]:
        """Run a kernel that says how much it found; its results are the first elements of what it wrote."""
        written = [single(self.shared.values_of(of, "room")) for of in _as_called(kernel, args)]
        self.steps.append(Launch(kernel.func, (*args, *written), len(written), (), " + ".join(kernel.operators)))
        *rooms, sizes = written
        for index, var in enumerate(kernel.decided):
            number = Value(var.name, (), sizes.dtype)
            self.steps.append(Launch(_pick(sizes, index), (sizes, number), 1, (), "size"))
            pairs = zip(rooms, flat(result), strict=True)
            most = next(room.shape[0] for room, own in pairs if own.shape and own.shape[0] is var)
            self.steps.append(Bind(var, number, most))
            self.shared.decided[var] = (number, most)
        for own, room in zip(flat(result), rooms, strict=True):
            self.steps.append(View(own, room, first=True))
        return result

    def _branch(self, branch: If) -> Nested[Value]:
        condition = single(self.of(branch.cond))
        result = self.shared.values_of(branch.checked_type, "if")
        bodies = [self._body(part) for part in (branch.true_branch, branch.false_branch)]
        self.steps.append(Branch(condition, bodies[0], bodies[1], tuple(flat(result))))
        return result

    def _body(self, expression: Expr) -> Body:
        inner = _Writer(self.shared, self)
        result = flat(inner.of(expression))
        own = [inner.own(value) for value in result]
        return Body(tuple(self.shared.checked_early(inner.steps)), tuple(own))

    def own(self, value: Value) -> Value:
        """A value that a body hands out is made in it."""
        copy = Value(value.name, value.shape, value.dtype)
        self.steps.append(Copy(copy, value))
        return copy

    def _loop(self, name: Var, function: Function, args: Sequence[Nested[Value]]) -> Nested[Value]:
        """A function that ends in a call of itself or in its result: a loop over its parameters."""
        shape = loop_form(name, function)
        if shape is None:
            raise CannotCompile(
                f"{name.name_hint} calls itself elsewhere than at its end",
                hint="write loops with relay.loops.while_loop",
            )
        outside = flat(list(args))
        result = [
            self.shared.values_of(_stable(param, arg), "loop") for param, arg in zip(function.params, args, strict=True)
        ]
        inside = [
            self.shared.values_of(_stable(param, arg), "carried")
            for param, arg in zip(function.params, args, strict=True)
        ]

        before = _Writer(self.shared, self)
        before.steps = self.steps
        for param, value in zip(function.params, args, strict=True):
            before.values[param] = value
        condition = before.own(single(before._path_to(shape.lets, shape.condition)))

        turn = _Writer(self.shared, self)
        for param, value in zip(function.params, inside, strict=True):
            turn.values[param] = value
        turn._bind_lets(shape.lets)
        following = [turn.of(arg) for arg in shape.next_args]
        next_values = [turn.own(value) for value in flat(following)]
        again = _Writer(self.shared, self)  # the same expressions with other values: nothing of this turn is seen
        again.steps = turn.steps
        for param, arg in zip(function.params, following, strict=True):
            again.values[param] = arg
        next_condition = again.own(single(again._path_to(shape.lets, shape.condition)))

        carried = tuple(
            Carried(initial, held, after, final)
            for initial, held, after, final in zip(outside, flat(inside), next_values, flat(result), strict=True)
        )
        for one in carried:
            if one.initial.shape != one.next.shape or one.initial.dtype != one.next.dtype:
                raise CannotCompile(
                    f"a value of the loop {name.name_hint} changes its shape: {one.initial.shape}, {one.next.shape}",
                    hint="relay.create_executor('vm') runs such a loop",
                )
        inside_condition = Value("again", (), "bool")
        self.steps.append(
            Repeat(
                Body(tuple(self.shared.checked_early(turn.steps)), ()),
                condition=condition,
                next_condition=next_condition,
                inside_condition=inside_condition,
                carried=carried,
            )
        )
        after = _Writer(self.shared, self)
        after.steps = self.steps
        for param, value in zip(function.params, result, strict=True):
            after.values[param] = value
        return after._path_to(shape.lets, shape.result)

    def _path_to(self, lets: Sequence[Let], expression: Expr) -> Nested[Value]:
        self._bind_lets(lets)
        return self.of(expression)

    def _bind_lets(self, lets: Sequence[Let]) -> None:
        for let in lets:
            self.values[let.var] = self.of(let.value)


def _stable(param: Var, value: Nested[Value]) -> Type:
    """The type of a loop's parameter: sizes that its declaration leaves open are those it starts with."""
    of = param.checked_type

    def filled(declared: Type, held: Nested[Value]) -> Type:
        if isinstance(declared, TupleType):
            return TupleType(tuple(filled(one, part) for one, part in zip(declared.fields, fields(held), strict=True)))
        held = single(held)
        return TensorType(held.shape, str(held.dtype))

    return filled(of, value)


def lower_to_program(
    function: Function, name: str = "main", module: IRModule | None = None, checks: Sequence[SizeCheck] = ()
) -> Program:
    """The program of a typed and fused function. Tuples among its parameters and results are taken apart.

    It begins with `checks`, those of the graph before it was fused (`size_checks.graph_checks`).
    """
    shared = Shared(module, checks)
    writer = _Writer(shared)
    inputs: list[Value] = []
    for param in function.params:
        value = _inputs(param.checked_type, _unused_name(param.name_hint, inputs), inputs)
        writer.values[param] = value
    results = flat(writer.of(function.body))
    outputs: list[Value] = []
    used = {*inputs, *shared.constants}
    viewed = {step.value for step in writer.steps if isinstance(step, View)}
    for index, value in enumerate(results):
        # A result has memory of its own: inputs, constants, other views and repeated results are copied there.
        if value in used or value in viewed:
            copy = Value(f"output{index}", value.shape, value.dtype)
            writer.steps.append(Copy(copy, value))
            value = copy
        used.add(value)
        outputs.append(value)
    attrs = {"functions": shared.functions, "externals": shared.externals, **_outputs_of_any_length(writer, outputs)}
    steps = [*shared.required(checks), *shared.checked_early(writer.steps)]
    program = concat_in_place(Program(name, inputs, outputs, shared.constants, steps, attrs))
    functions: Mapping[Launch, Function] = program.attrs["functions"]  # type: ignore[assignment]
    return replace(program, operators={launch: _operators(function) for launch, function in functions.items()})


def _operators(function: Function) -> tuple[str, ...]:
    """The names of the operators that a fused function computes."""
    calls = [each for each in post_order(function.body) if isinstance(each, Call)]
    return tuple(str(getattr(call.attrs, "op_name", None) or call.op).removeprefix("nn.") for call in calls)


def name_outputs(program: Program, names: Sequence[str]) -> None:
    """Let results be called in headers and errors what the model calls them."""
    others = {*program.inputs, *program.constants}
    for name, value in zip(names, program.outputs, strict=False):
        if value not in others:
            value.name = name
            others.add(value)


def _outputs_of_any_length(writer: _Writer, outputs: list[Value]) -> dict[str, object]:
    """Outputs whose sizes the run decides get room for the most there can be; the sizes are outputs at the end.

    The result says how to read them: for each such output its shape, and for each size variable its output.
    """
    decided = writer.shared.decided
    shapes: dict[int, tuple[int | PrimExpr, ...]] = {}
    for index, value in enumerate(outputs):
        used = [
            var for size in value.shape if not isinstance(size, int) for var in variables_in(size) if var in decided
        ]
        if not used:
            continue
        most = {var: decided[var][1] for var in decided}
        elements: int | PrimExpr = 1
        for size in value.shape:
            elements = elements * (size if isinstance(size, int) else substitute(size, most))
        room = Value(value.name, known_sizes(TensorType((elements,))), value.dtype)
        writer.steps.append(Copy(room, value, first=True))
        shapes[index] = value.shape
        outputs[index] = room
    if not shapes:
        return {}
    locations = {}
    for var, (number, _) in decided.items():
        own = Value(f"{var.name}_size", (), number.dtype)
        writer.steps.append(Copy(own, number))
        locations[var] = len(outputs)
        outputs.append(own)
    return {"shapes": shapes, "sizes": locations}


def _as_called(kernel: Lowered, args: Sequence[Value]) -> list[TensorType]:
    """The types of a kernel's outputs, in sizes of the caller: a kernel's own variables, or those of an equal function
    that it was made for, mean nothing here."""
    sizes = dict[PrimVar, PrimExpr]()
    for buffer, arg in zip(kernel.func.argument_buffers(), args, strict=False):  # outputs come behind
        for own, given in zip(buffer.shape, arg.shape, strict=True):
            if isinstance(own, PrimVar):
                sizes.setdefault(own, as_expr(given).astype(own.dtype))
    return [
        TensorType([substitute(size, sizes) if isinstance(size, PrimExpr) else size for size in of.shape], of.dtype)
        for of in kernel.outputs
    ]


def _pick(sizes: Value, index: int) -> PrimFunc:
    """A kernel that takes one number out of a vector."""
    vector = te.placeholder(sizes.shape, sizes.dtype, name="sizes")
    number = te.compute((), lambda: vector[index], name="number")
    return te.create_prim_func([vector, number]).with_attr("global_symbol", f"pick_{index}")


def _unused_name(name: str, values: Sequence[Value]) -> str:
    """`name`, numbered where an input has it already: variables are told apart by identity, inputs by name."""
    taken = {value.name for value in values}
    numbered = (f"{name}_{count}" for count in range(1, len(taken) + 2))
    return next(one for one in (name, *numbered) if one not in taken)


def _inputs(of: Type, name: str, result: list[Value]) -> Nested[Value]:
    if isinstance(of, TupleType):
        return [_inputs(field, f"{name}_{k}", result) for k, field in enumerate(of.fields)]
    if not isinstance(of, TensorType):
        raise CannotCompile(f"parameter {name} is {type_text(of)}; a compiled model takes tensors")
    if any(is_any(size) for size in of.shape):
        raise CannotCompile(f"parameter {name} has sizes without a name: {type_text(of)}")
    value = Value(name, known_sizes(of), str(of.dtype))
    result.append(value)
    return value
