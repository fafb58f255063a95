"""TempOpAttr: something hung on an operator for the time of a `with`.

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        mod = relay.transform.AlterOpLayout()(mod)
"""

from __future__ import annotations

from loopwright.relay.op.registry import get


class TempOpAttr:
    """The operator has `attr_value` under `attr_key` inside the `with`, and what it had before after it."""

    def __init__(self, op_name: str, attr_key: str, attr_value: object) -> None:
        self.op = get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value

    def __enter__(self) -> TempOpAttr:
        self._before = self.op.extra.get(self.attr_key)
        self.op.reset_attr(self.attr_key)
        self.op.set_attr(self.attr_key, self.attr_value)
        return self

    def __exit__(self, *problem: object) -> None:
        self.op.reset_attr(self.attr_key)
        if self._before is not None:
            self.op.set_attr(self.attr_key, self._before)
