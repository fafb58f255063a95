"""bitcode: LLVM's own files, `.ll` and `.bc`: what a module is saved as, and objects made of them again."""

from __future__ import annotations

from loopwright.codegen.llvm.engine import initialize, target_machine
from loopwright.runtime.library_file import NotALibrary
from loopwright.target import host_description


def bitcode_of(text: str) -> bytes:
    """LLVM text as bitcode."""
    import llvmlite.binding as llvm

    initialize()
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        result: bytes = module.as_bitcode()
        return result


def object_of(name: str, data: bytes, form: str) -> bytes:
    """The object for this machine of an LLVM file, text (`ll`) or bitcode (`bc`), which is optimized already."""
    import llvmlite.binding as llvm

    initialize()
    with llvm.create_context() as context:
        try:
            read = llvm.parse_bitcode(data, context) if form == "bc" else llvm.parse_assembly(data.decode(), context)
        except (RuntimeError, UnicodeDecodeError) as error:
            raise NotALibrary(name, f"LLVM does not read it: {error}") from None
        with read as module:
            cpu = host_description()
            if module.triple.partition("-")[0] not in ("", cpu.triple.partition("-")[0]):
                raise NotALibrary(name, f"it is for {module.triple}, and this machine is {cpu.triple}")
            module.verify()
            if any(["externally_initialized" in str(each) for each in module.global_variables]):
                raise NotALibrary(name, "it has large constants, whose contents only an object holds: save it as .o")
            result: bytes = target_machine(cpu, 2).emit_object(module)
            return result
