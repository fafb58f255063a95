"""Random kernels whose warps have roles, each with arrays to call it with.

`random_roles(seed)` makes a program of one or two kernels. Each has a loop of two to four roles; every role fills some
memory of the iteration, in one of many ways (copies that are bulk copies and copies that are nearly such, boxes of
tensors, computed elements, gathers), for those that come after it, and stores something that it computes of what it
may read: in values, indices, conditions, lets and extents of loops, or a box as it is. Roles have state that lives from
turn to turn, in registers, in shared and in global memory. There may be loops and conditions around the loop of roles,
a second loop of the same roles in another order, parts of roles between, and fewer blocks that stay. The program in
the order of its text says what is right.

Values are small integers, also of floats.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from loopwright.ir import PrimFunc
from loopwright.script import from_source

DTYPES = ("float32", "float32", "int32", "float16", "int8", "uint8", "int64", "float64")
LENGTHS = (32, 64, 64, 96, 128, 128, 160, 100, 33, 1)
TURNS = (1, 2, 3, 5, 8)

Argument = np.ndarray | int


@dataclass
class RolesProgram:
    """A program, and the arguments of some calls."""

    seed: int
    text: str
    calls: list[list[Argument]]

    def function(self) -> PrimFunc:
        return from_source(self.text)

    def __str__(self) -> str:
        return f"seed {self.seed}:\n{self.text}"


def random_roles(seed: int) -> RolesProgram:
    """A program with roles; the same one for the same seed."""
    return _Maker(seed).make()


@dataclass
class _Memory:
    """What a role has filled, and the condition under which an element holds something."""

    name: str
    length: int
    columns: int | None
    dtype: str
    holds: str = ""  # of the element {e}

    def at(self, index: str) -> str:
        inside = f"({index}) // {self.columns}, ({index}) % {self.columns}" if self.columns else index
        return f"{self.name}[{inside}]"


@dataclass
class _Role:
    name: str
    threads: int
    readable: list[_Memory] = field(default_factory=list)


class _Maker:
    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.parameters: list[str] = []
        self.arrays: list[np.ndarray] = []
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, start: str) -> str:
        self.count += 1
        return f"{start}{self.count}"

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def array(self, start: str, shape: tuple[int, ...], dtype: str, is_result: bool = False) -> str:
        name = self.name(start)
        self.parameters.append(f'{name}: T.Buffer({shape}, "{dtype}")')
        values = np.random.default_rng(self.seed * 100 + self.count).integers(0, 5, shape)
        self.arrays.append((values * (not is_result)).astype(dtype))
        return name

    # --- the program ------------------------------------------------------------------------------------------------

    def make(self) -> RolesProgram:
        self.most = self.rng.choice(TURNS)  # of turns
        for _ in range(1 + self.chance(0.2)):
            self.kernel()
        sizes = [0, 1, self.most] if self.chance(0.5) else [self.most]
        parameters = ", ".join([*self.parameters, "n: T.int32", "limit: T.int32"])
        text = "\n".join(["@T.prim_func", f"def main({parameters}):", *self.lines, ""])
        calls: list[list[Argument]] = [[*self.arrays, n, self.rng.randrange(-9, 200)] for n in sizes]
        return RolesProgram(self.seed, text, calls)

    def kernel(self) -> None:
        rng = self.rng
        blocks = rng.choice([(1,), (2,), (3,), (2, 2)])
        self.blocks = int(np.prod(blocks))
        self.around = rng.choice([1, 1, 1, 2, 3])  # iterations of a loop around
        is_nest = self.around > 1 or self.chance(0.25)
        self.rows = self.blocks * self.most * self.around
        counter = self.array("counter", (1,), "int32", is_result=True) if not is_nest and self.chance(0.15) else ""
        if counter:
            self.put('for tx in T.thread_binding(1, thread="threadIdx.x"):')
            self.put(f"    {counter}[tx] = 0")
        stay = f', annotations={{"resident_blocks": {rng.choice([1, 2, 3, 5])}}}' if self.chance(0.25) else ""
        for axis, extent in zip("xy", blocks, strict=False):
            self.put(f'for b{axis} in T.thread_binding({extent}, thread="blockIdx.{axis}"{stay}):')
            self.depth += 1
            stay = ""
        self.block = "bx" if len(blocks) == 1 else "(by * 2 + bx)"
        roles = []
        for k in range(rng.choice([2, 2, 3, 4])):
            roles.append(_Role(f"r{k}", 32 if self.chance(0.75 - k / 4) else rng.choice([32, 64, 96, 128])))
        self.has_state = not counter
        outside, last = self.plan(roles)
        for line in outside:
            self.put(line)
        depth, self.trip = self.depth, ""
        if is_nest:
            extent = rng.choice([str(self.around), f"T.min(n, {self.around})"])
            self.put(f"for t in {'T.unroll' if extent.isdigit() and self.chance(0.2) else 'range'}({extent}):")
            self.depth += 1
            self.trip = "t"
            if self.chance(0.3):
                self.put(f"if {rng.choice(['t % 2 == 0', 'n > 0', f'{self.block} + t < limit'])}:")
                self.depth += 1
            self.beside(roles)
        self.loop(roles, counter)
        if is_nest:
            self.beside(roles)
            if self.chance(0.5):
                self.loop(rng.sample(roles, rng.choice([len(roles), max(1, len(roles) - 1)])), "")
                self.beside(roles)
        self.depth = depth
        for line in last:
            self.put(line)
        self.depth = 1

    def beside(self, roles: list[_Role]) -> None:
        """What roles do before, between and behind their loops: with their own memory."""
        for role in roles:
            if not self.chance(0.3):
                continue
            values = ["tx % 5"]
            if role.name in self.register:
                values.append(f"{self.register[role.name]}[tx, 0]")
            self.put(f'with T.attr("{role.name}", "warp_role", {role.threads}):')
            self.depth += 1
            if role.name in self.register and self.chance(0.6):
                self.threads(role, [f"{self.register[role.name]}[tx, 0] = (tx + t) % 3"])
                result = self.array("D", (self.blocks * self.around, role.threads), "int32", is_result=True)
                at = f"{result}[{self.block} * {self.around} + t, tx]"
                self.threads(role, [f"{at} = {self.register[role.name]}[tx, 0] + 1"])
            else:
                result = self.array("D", (self.blocks * self.around, role.threads), "int32", is_result=True)
                self.threads(role, [f"{result}[{self.block} * {self.around} + t, tx] = tx % 5 + t"])
            self.depth -= 1

    def loop(self, roles: list[_Role], counter: str) -> None:
        """A loop of roles; the same ones may have had another one."""
        rng, depth = self.rng, self.depth
        turns = "n" if self.chance(0.4) else str(self.most)
        if self.trip and self.most > 1 and self.chance(0.3):
            turns = rng.choice(["t % 2 + 1", f"T.max({self.most} - t, 0)", "t % 2"])
        i = f"(t * {self.most} + i)" if self.trip else "i"
        turn_rows = self.most * self.around
        self.row = (
            f"({i} * {self.blocks} + {self.block})" if self.chance(0.5) else f"({self.block} * {turn_rows} + {i})"
        )
        self.turn = "i"
        for role in roles:
            role.readable = []
        first = rng.choice(["", "", "1, " if turns.isdigit() and self.most > 1 else ""])
        kind = rng.choice(["serial", "serial", "serial", "unroll" if turns.isdigit() else "serial"])
        stages = rng.choice([1, 1, 2, 3, 5])
        self.put(f'for i in T.{kind}({first}{turns}, annotations={{"warp_role_stages": {stages}}}):')
        self.depth += 1
        ticket = _Memory(self.name("ticket"), 1, None, "int32") if counter else None
        if ticket is not None:
            self.put(f'{ticket.name} = T.decl_buffer((1,), "int32", scope="shared")')
        for line in self.filled(roles):
            self.put(line)
        for k, role in enumerate(roles):
            self.put(f'with T.attr("{role.name}", "warp_role", {role.threads}):')
            self.depth += 1
            if ticket is not None and k == 0:
                self.threads(role, [
                    "if tx == 0:",
                    f"    {ticket.name}[0] = T.take_ticket(T.address_of({counter}[0]))",
                ])  # fmt: skip
                self.row = self.turn = f"{ticket.name}[0]"  # which turn of which block has it is not known
            self.role(role, roles[k + 1 :])
            self.depth -= 1
        self.depth = depth

    def filled(self, roles: list[_Role]) -> list[str]:
        """The memory of an iteration."""
        rng, inside = self.rng, []
        self.fills: dict[str, list[_Memory]] = {role.name: [] for role in roles}
        for role in roles:
            for _ in range(rng.choice([1, 2, 3] if role is roles[0] else [0, 0, 1, 2])):
                columns = None
                length, dtype = rng.choice(LENGTHS), rng.choice(DTYPES)
                if length % 32 == 0 and self.chance(0.4):
                    columns = rng.choice([32, 16, length])
                    if self.chance(0.5):
                        length *= 8  # as many lines as a swizzle has
                memory = _Memory(self.name("S"), length, columns, dtype)
                self.fills[role.name].append(memory)
                shape = (length // columns, columns) if columns else (length,)
                scope = rng.choice(["shared", "shared", "shared.dyn"])
                inside.append(f'{memory.name} = T.decl_buffer({shape}, "{dtype}", scope="{scope}")')
        return inside

    def plan(self, roles: list[_Role]) -> tuple[list[str], list[str]]:
        """Memory around the loops, and what is done behind them."""
        outside, last = [], []
        self.state: dict[str, str] = {}
        self.register: dict[str, str] = {}
        for role in roles:
            if self.has_state and self.chance(0.3):
                state = self.state[role.name] = self.name("Z")
                outside.append(f'{state} = T.decl_buffer(({role.threads},), "int32", scope="shared")')
                outside.append(f"for q in range({role.threads}):")
                outside.append(f"    {state}[q] = q % 5")
                if self.chance(0.5):
                    result = self.array("F", (self.blocks, role.threads), "int32", is_result=True)
                    last += [f"for q in range({role.threads}):", f"    {result}[{self.block}, q] = {state}[q]"]
            if self.has_state and self.chance(0.3):
                register = self.register[role.name] = self.name("L")
                outside.append(f'{register} = T.decl_buffer(({role.threads}, 1), "int32", scope="local")')
        return outside, last

    # --- a role -----------------------------------------------------------------------------------------------------

    def threads(self, role: _Role, body: list[str]) -> None:
        self.put(f'for tx in T.thread_binding({role.threads}, thread="threadIdx.x"):')
        for line in body:
            self.put("    " + line)

    def role(self, role: _Role, later: list[_Role]) -> None:
        register = self.register.get(role.name)
        if register:
            self.threads(role, ["if i <= 1:", f"    {register}[tx, 0] = tx % 3"])
        if self.chance(0.3):
            self.result(role)
        own = self.fills[role.name]
        for memory in own:
            self.fill(role, memory)
            if self.chance(0.25):
                role.readable.append(memory)
        for memory in own:
            readers = [other for other in later if self.chance(0.6)]
            for other in readers:
                other.readable.append(memory)
        for _ in range(self.rng.choice([1, 1, 2] if not own else [0, 1, 1, 2])):
            self.result(role)
        if role.name in self.state:
            self.exchange(role)
        if register:
            self.threads(role, [f"{register}[tx, 0] = ({register}[tx, 0] + {self.value(role, 'tx', 1)}) % 7"])

    def loop_over(self, role: _Role, length: int, body: list[str], is_filling: bool) -> None:
        """`body` for the elements {e} below `length`, by all threads."""
        threads, rng = role.threads, self.rng
        if length % (threads * 4) == 0 and self.chance(0.15):
            lines = [
                f"for k in range({length // (threads * 4)}):",
                "    for v in T.vectorized(4):",
                *["        " + line.replace("{e}", f"((k * {threads} + tx) * 4 + v)") for line in body],
            ]
            return self.threads(role, lines)
        times = -(-length // threads)
        kind = rng.choice(["range", "range", "T.unroll"])
        e = rng.choice([f"(k * {threads} + tx)", f"(tx + {threads} * k)"])
        lines, ident = [f"for k in {kind}({times}):"], "    "
        if length % threads:
            lines.append(f"    if {e} < {length}:")
            ident = "        "
        lines += [ident + line.replace("{e}", e) for line in body]
        if not is_filling and self.chance(0.2):  # a condition around the threads
            self.put(f"if {rng.choice([f'{self.turn} % 2 == 0', f'{self.turn} < limit', 'limit < 50'])}:")
            self.depth += 1
            self.threads(role, lines)
            self.depth -= 1
        else:
            self.threads(role, lines)
        return None

    def fill(self, role: _Role, memory: _Memory) -> None:
        rng, length = self.rng, memory.length
        if memory.columns and self.chance(0.6):
            self.box(memory)
            return
        if self.chance(0.6):
            self.copy(role, memory)
            return
        target = memory.at(rng.choice(["{e}", f"{length - 1} - {{e}}"]))
        value = self.value(role, "{e}", 2)
        self.loop_over(role, length, [f'{target} = T.Cast("{memory.dtype}", ({value}) % 5)'], True)

    def box(self, memory: _Memory) -> None:
        """The first thread copies a box of a tensor, or nearly such."""
        assert memory.columns
        rows, columns = memory.length // memory.columns, memory.columns
        kind = self.rng.choice(["plain", "plain", "plain", "inside", "less", "twice", "two", "computed"])
        slack = self.rng.choice([0, 0, 0, 16])
        height = self.rows * rows + (rows if kind == "twice" else 0) - (rows // 2 if kind == "inside" else 0)
        source = self.array("A", (max(1, height), columns + slack), memory.dtype)
        head, at = f"for r, c in T.grid({rows}, {columns}):", f"{self.row} * {rows} + r"
        element = f"{source}[{at}, c]"
        if kind in ("inside", "less"):
            end = max(1, height) if kind == "inside" else height - rows // 2
            element = f'T.if_then_else({at} < {end}, {element}, T.Cast("{memory.dtype}", 0))'
        elif kind == "twice":
            head, element = f"for o, r, c in T.grid(2, {rows}, {columns}):", f"{source}[{at} + o * {rows}, c]"
        elif kind == "two" and rows % 2 == 0:
            head, element = f"for o, r, c in T.grid(2, {rows // 2}, {columns}):", f"{source}[{at} + o * {rows // 2}, c]"
        elif kind == "computed":
            element += f' + T.Cast("{memory.dtype}", 1)'
        row = f"o * {rows // 2} + r" if "o *" in element and kind == "two" else "r"
        self.put(head)
        self.put(f"    {memory.name}[{row}, c] = {element}")

    def store_box(self, memory: _Memory) -> None:
        """The first thread stores memory as it is."""
        assert memory.columns
        rows, columns = memory.length // memory.columns, memory.columns
        kind = self.rng.choice(["plain", "plain", "inside", "again", "read"])
        height = self.rows * rows
        result = self.array("B", (height, columns), memory.dtype, is_result=True)
        at = f"{self.row} * {rows} + r" if kind != "again" else f"{self.row} // 2 * {rows} + r"
        if kind == "again" and self.blocks > 1:
            return  # blocks would meet
        self.put(f"for r, c in T.grid({rows}, {columns}):")
        if kind == "inside":
            self.put(f"    if {at} < {height - self.rng.choice([0, 3])}:")
        indent = "        " if kind == "inside" else "    "
        self.put(f"{indent}{result}[{at}, c] = {memory.name}[r, c]")
        if kind == "read":
            other = self.array("B", (self.rows, columns), memory.dtype, is_result=True)
            self.put(f"for c in range({columns}):")
            self.put(f"    {other}[{self.row}, c] = {result}[{self.row} * {rows}, c]")

    def copy(self, role: _Role, memory: _Memory) -> None:
        rng, length = self.rng, memory.length
        slack = rng.choice([0, 0, 0, 1, 3, 16])
        if self.chance(0.5):
            width = length + slack
            source = self.array("A", (self.rows, width), memory.dtype)
            offset = rng.choice([0, slack])
            element = f"{source}[{self.row}, {{e}} + {offset}]" if offset else f"{source}[{self.row}, {{e}}]"
        else:
            source = self.array("A", (self.rows * length + slack,), memory.dtype)
            element = f"{source}[{self.row} * {length} + {{e}} + {slack}]"
        target = memory.at("{e}")
        kind = rng.choice(["plain", "plain", "guard", "twice", "turn", "zero first", "reversed", "over", "data"])
        if kind == "reversed":
            element = element.replace("{e}", f"({length - 1} - {{e}})")
        body = [f"{target} = {element}"]
        if kind in ("guard", "twice"):
            memory.holds = rng.choice(["{e} < limit", f"{self.row} * 10 + {{e}} < limit", "{e} + n < limit"])
            if kind == "twice":
                memory.holds += f" and {rng.choice([f'{self.turn} % 2 == 0', 'limit > 20', '{e} < 90'])}"
        elif kind == "turn":
            memory.holds = rng.choice([f"{self.turn} % 2 == 0", "limit > 20", f"{self.row} < 2"])
        elif kind == "data":
            flags = self.array("flags", (self.rows,), "int32")
            memory.holds = f"{flags}[{self.row}] > 1"
        elif kind == "zero first":
            body = [f'{target} = T.Cast("{memory.dtype}", 3)', "if {e} < limit:", f"    {body[0]}"]
        if memory.holds:
            lines, ident = [], ""
            for term in memory.holds.split(" and "):
                lines.append(f"{ident}if {term}:")
                ident += "    "
            body = [*lines, ident + body[0]]
        self.loop_over(role, length, body, True)
        if kind == "over":
            self.threads(role, ["if tx == 0:", f'    {memory.at("0")} = T.Cast("{memory.dtype}", 2)'])

    def index(self, role: _Role, e: str, length: int, depth: int) -> str:
        kind = self.rng.choice(["plain", "reversed", "strided", "data"])
        if kind == "reversed":
            return f"{length - 1} - ({e}) % {length}"
        if kind == "strided":
            return f"(({e}) * 3 + {self.turn}) % {length}"
        if kind == "data" and depth > 0:
            return f"({self.value(role, e, depth - 1)}) % {length}"
        return f"({e}) % {length}"

    def read(self, role: _Role, memory: _Memory, e: str, depth: int) -> str:
        index = self.index(role, e, memory.length, depth)
        load = f'T.Cast("int32", {memory.at(index)})'
        if not memory.holds:
            return load
        holds = memory.holds.replace("{e}", f"({index})")
        return f"T.if_then_else({holds}, {load}, 1)"

    def value(self, role: _Role, e: str, depth: int) -> str:
        """An integer."""
        kinds = ["i", "e", "sum"] if depth > 0 else ["i", "e"]
        if role.readable:
            kinds += ["memory"] * 4
        if role.name in self.register:
            kinds += ["register"]
        kind = self.rng.choice(kinds)
        if kind == "memory":
            return self.read(role, self.rng.choice(role.readable), e, depth)
        if kind == "register":
            return f"{self.register[role.name]}[tx, 0]"
        if kind == "sum":
            return f"({self.value(role, e, depth - 1)} + {self.value(role, e, depth - 1)} * 2)"
        return {"i": f"({self.turn} + 1)", "e": f"({e}) % 4"}[kind]

    def result(self, role: _Role) -> None:
        """Something of what a role may read is stored."""
        rng, threads = self.rng, role.threads
        boxes = [memory for memory in role.readable if memory.columns and not memory.holds]
        if boxes and self.chance(0.4):
            return self.store_box(rng.choice(boxes))
        kind = rng.choice(["elements", "elements", "let", "loop", "sum", "shuffle", "condition"])
        if kind == "sum" and self.has_state:  # an element that lives from turn to turn
            result = self.array("B", (self.blocks, threads), "int32", is_result=True)
            at = f"{result}[{self.block}, tx]"
            return self.threads(role, [f"{at} = {at} + {self.value(role, 'tx', 2)}"])
        length = rng.choice(LENGTHS)
        if kind in ("loop", "shuffle"):
            length = threads
        result = self.array("B", (self.rows, length), "int32", is_result=True)
        at = f"{result}[{self.row}, {{e}}]"
        value = self.value(role, "{e}", 2)
        if kind == "let":
            self.loop_over(role, length, [f"with T.LetStmt({value}) as v0:", f"    {at} = v0 * v0 + 1"], False)
        elif kind == "condition":
            condition = f"{value} > 2"
            lines = [f"if {condition}:", f"    {at} = {self.value(role, '{e}', 2)}", "else:", f"    {at} = 9"]
            self.loop_over(role, length, lines, False)
        elif kind in ("loop", "shuffle"):
            s = self.name("s")
            lines = [f'{s} = T.decl_buffer((1,), "int32", scope="local")']
            if kind == "loop":
                lines += [f"{s}[0] = 0", f"for q in range(({self.value(role, 'tx', 1)}) % 9):"]
                lines += [f"    {s}[0] = {s}[0] * 2 % 100 + {self.value(role, 'q', 1)}"]
            else:
                lines += [f"{s}[0] = {self.value(role, 'tx', 2)}", "for q in T.unroll(5):"]
                shuffled = f"T.tvm_warp_shuffle_xor(T.uint32(4294967295), {s}[0], T.shift_left(1, q), 32, 32)"
                lines += [f"    {s}[0] = {s}[0] + {shuffled}"]
            lines += [at.replace("{e}", "tx") + f" = {s}[0]"]
            self.threads(role, lines)
        else:
            self.loop_over(role, length, [f"{at} = {value}"], False)
        return None

    def exchange(self, role: _Role) -> None:
        """Threads of the role see what others of them left in the turn before."""
        state, threads = self.state[role.name], role.threads
        result = self.array("B", (self.rows, threads), "int32", is_result=True)
        self.threads(role, [f"{result}[{self.row}, tx] = {state}[{threads - 1} - tx]"])
        self.threads(role, [f"{state}[tx] = ({result}[{self.row}, tx] + {self.value(role, 'tx', 1)}) % 11"])
