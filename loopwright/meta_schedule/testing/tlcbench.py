"""load_quantized_bert_base: a model that has to be fetched, which is not done here."""

from __future__ import annotations

from typing import Any

from loopwright.runtime.errors import NotBuilt


def load_quantized_bert_base(batch_size: int = 1, seq_len: int = 384) -> Any:
    """Not built yet."""
    raise NotBuilt("meta_schedule.testing.tlcbench.load_quantized_bert_base", hint="import the model: from_onnx")
