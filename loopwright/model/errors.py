"""What the back end of models refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.runtime.errors import LoopwrightError


class BadProgram(LoopwrightError, ValueError):
    """The steps of a model do not fit together: a value is read before any step writes it, or written twice.

    A program is checked before anything is compiled. Each value is an input, a constant, or written by exactly one
    step that comes before every step that reads it; what a loop or a branch writes is seen outside only through its
    results.

    For example:

        from loopwright.model import Copy, Program, Value, compile_program
        x, y = Value("x", (4,), "float32"), Value("y", (4,), "float32")
        compile_program(Program("f", [], [y], {}, [Copy(y, x)]))
    """

    code = "LW1250"

    def __init__(self, program: str, problem: str, hint: str | None = None) -> None:
        super().__init__(f"the program {program}: {problem}", hint=hint, fields={"program": program})


class KernelMismatch(LoopwrightError, ValueError):
    """A kernel is called with values that are not what its parameters are declared to be.

    For example:

        from loopwright import te
        from loopwright.model import Launch, Program, Value, compile_program
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1, name="B")
        x, y = Value("x", (5,), "float32"), Value("y", (4,), "float32")
        compile_program(Program("f", [x], [y], {}, [Launch(te.create_prim_func([A, B]), (x, y), name="add one")]))
    """

    code = "LW1251"

    def __init__(self, kernel: str, problem: str) -> None:
        super().__init__(f"the kernel {kernel}: {problem}", fields={"kernel": kernel})


class SizeNotKnown(LoopwrightError, ValueError):
    """A length in a model depends on a variable that nothing gives a value.

    A size variable has its value from an input whose shape holds it as a length by itself, or from a `Bind` step.

    For example:

        from loopwright import te
        from loopwright.model import Copy, Program, Value, compile_program
        n, m = te.var("n"), te.var("m")
        x, y = Value("x", (n,), "float32"), Value("y", (m,), "float32")
        compile_program(Program("f", [x], [y], {}, [Copy(y, x)]))
    """

    code = "LW1252"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f"{what} depends on the size {name}, and nothing gives its value",
            hint=f"make {name} the length of an axis of an input",
            fields={"size": name},
        )


class OpenLengths(LoopwrightError, NotImplementedError):
    """C source of a model is made for lengths that are numbers, and the model leaves some to the call.

    The shapes of inputs can be given: `loopwright compile model.onnx -o model.c --input-shapes "x:[1,3,224,224]"`, or
    `shape=` of `from_onnx`. The target llvm takes open lengths.

    For example:

        from loopwright import te
        from loopwright.model import Copy, Program, Value, c_module
        n = te.var("n")
        x, y = Value("x", (n,), "float32"), Value("y", (n,), "float32")
        c_module(Program("f", [x], [y], {}, [Copy(y, x)]))
    """

    code = "LW1255"

    def __init__(self, inputs: Mapping[str, Sequence[object]], lengths: Sequence[str]) -> None:
        given = " ".join(
            f"{name}:[{','.join(str(size) if isinstance(size, int) else '1' for size in shape)}]"
            for name, shape in inputs.items()
        )
        super().__init__(
            f"C source of a model with dynamic dimensions ({', '.join(lengths)}) is not built yet",
            hint=f'give its shapes, such as --input-shapes "{given}", or compile it for the target llvm'
            if given
            else "compile it for the target llvm",
            fields={"lengths": list(lengths)},
        )


class ConstantsTooLarge(LoopwrightError, ValueError):
    """The constants of a model do not fit into one library: code reaches 2 GiB around itself, and no farther.

    Write them to a file beside the library instead: `export_library("model.so", constants="file")`.

    For example:

        from loopwright.model.constants import require_size
        require_size("model", 3 << 30)
    """

    code = "LW1253"

    def __init__(self, name: str, size: int) -> None:
        super().__init__(
            f"the constants of {name} take {size:,} bytes, more than a library can hold beside its code",
            hint='write them to a file of their own: export_library("model.so", constants="file")',
            fields={"program": name, "bytes": size},
        )


class BadConstantsPlace(LoopwrightError, ValueError):
    """`constants=` of `export_library` says where the weights of a model go: `"library"` (into it) or `"file"`.

    For example:

        from loopwright.model.constants import require_place
        require_place("elsewhere")
    """

    code = "LW1254"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"constants={given!r} is no place for constants",
            hint='constants="library" puts them into the library, constants="file" into a file beside it',
            fields={"given": str(given)},
        )


class BadModelInput(LoopwrightError, ValueError, TypeError):
    """A compiled model was called with inputs that it does not take: their number, names, types or shapes.

    For example:

        import numpy as np
        from loopwright import relay

        x = relay.var("x", shape=(3,))
        model = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))))
        model(np.zeros(4, "float32"))
    """

    code = "LW1208"

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem, hint=hint)
