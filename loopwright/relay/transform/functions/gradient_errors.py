"""What has no gradient."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError


class NoGradient(LoopwrightError, ValueError):
    """The gradient was asked of something that has none: an operator without one, or a choice made when it runs.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3,))
        mod = relay.IRModule.from_expr(relay.Function([x], relay.sort(x)))
        relay.transform.FirstOrderGradient()(mod)
    """

    code = "LW1220"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has no gradient", hint="an operator says its own: gradient(self, call, grad) of its class"
        )
