"""c_source: a program as C source: its kernels, its constants and its main function in one file.

    module = c_module(program)
    module.get_source("c"), module.get_source("h")
    module.export_library("model.c")

For machines that have a C compiler and little else. The code is scheduled for the target "c"; nothing runs in parallel.
Constants are written out as numbers, so this is for small models. Lengths must be numbers.
"""

from __future__ import annotations

import functools

from loopwright.autosched import apply
from loopwright.codegen.source import make_c_module
from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.structural import structural_equal
from loopwright.ir.structural_hash import structural_hash
from loopwright.ir.verifier import verify
from loopwright.ir.visitor import variables_in
from loopwright.model.check import check_program
from loopwright.model.errors import OpenLengths
from loopwright.model.kernel import SCHEDULED, Kernel, named
from loopwright.model.main_function import make_main
from loopwright.model.plan import plan_memory
from loopwright.model.program import Launch, Program
from loopwright.model.workers import in_parallel
from loopwright.runtime.module import Module
from loopwright.target import Target, describe


def c_module(program: Program, target: Target | str = "c", *, processes: int | None = None) -> Module:
    """The program as a module of C source; it is compiled when it is first called."""
    chosen = Target(target)
    check_program(program)
    launches = program.launches()
    values = [*program.inputs, *program.outputs, *[value for launch in launches for value in launch.arguments]]
    moving = [value for value in values if not value.is_static]
    if moving:
        sizes = [size for value in moving for size in value.shape if not isinstance(size, int)]
        lengths = dict.fromkeys(var.name for size in sizes for var in variables_in(size))
        raise OpenLengths({value.name: value.shape for value in program.inputs if not value.is_static}, list(lengths))
    names, functions = _distinct(launches, program.name)
    jobs = [functools.partial(_lowered, func, chosen) for func in functions.values()]
    module = IRModule()
    result: dict[int, PrimFunc] = dict(in_parallel(jobs, processes))
    for number, name in enumerate(functions):
        module[name] = result[number].with_attr("global_symbol", name)
    # A C function takes its arguments to be apart, so nothing is written in place of what is read.
    kernels = {launch: _called(names[launch]) for launch in launches}
    main = make_main(program, plan_memory(program), kernels, program.name, for_c=True)
    module[program.name] = main.func
    return make_c_module(module, describe(chosen), program.name)


def _distinct(launches: list[Launch], stem: str) -> tuple[dict[Launch, str], dict[str, PrimFunc]]:
    """A name for each launch's kernel, and the kernels by name; equal ones have one name."""
    names: dict[Launch, str] = {}
    functions: dict[str, PrimFunc] = {}
    known: dict[int, list[str]] = {}
    for launch in launches:
        alike = known.setdefault(structural_hash(launch.func), [])
        name = next((one for one in alike if structural_equal(functions[one], launch.func)), None)
        if name is None:
            name = f"{stem}_kernel_{len(functions)}"
            functions[name] = launch.func
            alike.append(name)
        names[launch] = name
    return names, functions


def _lowered(func: PrimFunc, target: Target) -> PrimFunc:
    from loopwright.analysis import check_program as prove
    from loopwright.transform import lower

    module = named(func)
    if not func.attrs.get(SCHEDULED, False):
        module = apply(module, target).mod
    verify(module)
    return next(function for _, function in lower(prove(module), target).functions_items())


def _called(name: str) -> Kernel:
    return Kernel(name, b"", b"", (), (), False, True, (), "", {})
