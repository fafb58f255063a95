"""What may be wrong with a PyTorch model, and with the way it is used."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.errors import LoopwrightError


class NotAModel(LoopwrightError, TypeError):
    """What was given is no PyTorch model: no module, no exported program, no TorchScript.

    For example:

        import torch

        from loopwright.frontends import from_pytorch

        from_pytorch(torch.zeros(3))
    """

    code = "LW1380"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"a model is a torch.nn.Module, a torch.export.ExportedProgram or TorchScript, and not "
            f"{type(given).__name__} {given!r:.60}",
            fields={"given": type(given).__name__},
        )


class InputsNeeded(LoopwrightError, ValueError):
    """A module is exported by running it, and for that it needs inputs, or at least their shapes.

    For example:

        import torch

        from loopwright.frontends import from_pytorch

        from_pytorch(torch.nn.Linear(3, 4))
    """

    code = "LW1381"

    def __init__(self, model: object, problem: str = "no inputs are given") -> None:
        super().__init__(
            f"{type(model).__name__}: {problem}, and a module is exported by running it",
            hint='give tensors behind the model, (x,), or names and shapes, [("x", (1, 3))]',
        )


class CannotExport(LoopwrightError, ValueError):
    """torch cannot make a graph of the model.

    It may branch on values that are known only when it runs, or use sizes for more than their names allow. What torch
    said is the reason given.

    For example:

        import torch

        from loopwright.frontends import from_pytorch

        class Branches(torch.nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        from_pytorch(Branches(), example_inputs=(torch.ones(3),))
    """

    code = "LW1382"

    def __init__(self, model: object, step: str, error: BaseException) -> None:
        message = str(error).strip() or type(error).__name__
        super().__init__(
            f"{type(model).__name__} cannot be exported: {step} failed with {type(error).__name__}",
            why=message[:600] + ("…" if len(message) > 600 else ""),
            hint="see torch.export's documentation; torch.cond and torch.while_loop express branches and loops",
        )


class BadTorchNode(LoopwrightError, ValueError):
    """A node of the exported graph cannot be converted: its inputs or arguments are not ones we have a way for.

    For example:

        import torch

        from loopwright.frontends import from_pytorch

        from_pytorch(torch.nn.Dropout(0.5).train(), example_inputs=(torch.ones(3),))
    """

    code = "LW1383"

    def __init__(self, node: str, op: str, problem: str, *, why: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"node {node!r} ({op}): {problem}", why=why, hint=hint, fields={"node": node, "op": op})


class UnsupportedTorchType(LoopwrightError, TypeError):
    """The model has a tensor of elements that we do not compute with: complex numbers, quantized tensors.

    For example:

        import torch

        from loopwright.frontends import from_pytorch

        from_pytorch(torch.nn.Identity(), example_inputs=(torch.ones(3, dtype=torch.complex64),))
    """

    code = "LW1384"

    def __init__(self, what: str, kind: str) -> None:
        super().__init__(f"{what} is of type {kind}, which is not supported", fields={"type": kind})


class ChangesState(LoopwrightError, ValueError):
    """The model changes its own buffers when it runs. What is compiled is a function, which keeps nothing.

    Batch normalisation in training mode does so. A model with a cache can return it, and be given it at the next call.

    For example:

        import torch

        from loopwright.frontends import from_pytorch

        from_pytorch(torch.nn.BatchNorm1d(3).train(), example_inputs=(torch.ones(2, 3),))
    """

    code = "LW1385"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"the model changes {', '.join(names)} when it runs, and a compiled function keeps nothing",
            hint="call model.eval() first, or have the model return the new value",
            fields={"buffers": list(names)},
        )


class WrongInputs(LoopwrightError, ValueError, TypeError):
    """A compiled module was called with inputs that are not those it was compiled for.

    For example:

        import torch

        from loopwright.frontends.pytorch import CompiledModule

        CompiledModule(torch.nn.ReLU(), (torch.ones(3),))(torch.ones(4))
    """

    code = "LW1386"

    def __init__(self, problem: str, *, hint: str | None = None) -> None:
        super().__init__(problem, hint=hint)
