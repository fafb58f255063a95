"""relay.text: graphs as text, and text as graphs.

    #[version = "0.0.5"]
    def @main(%x: Tensor[(1, 3), float32]) {
      %0 = add(%x, 1f) /* ty=Tensor[(1, 3), float32] */;
      nn.relu(%0) /* ty=Tensor[(1, 3), float32] */
    }

Start with `printer.py`; `blocks.py`, a level up, decides where a shared value is written, `values.py` writes attributes
and numbers, `sizes.py` types and sizes. `lexer.py`, `type_parser.py` and `parser.py` read it back, `metadata.py` holds
what has no text.
"""

from loopwright.relay.text.parser import fromtext, parse, parse_expr
from loopwright.relay.text.printer import astext, module_text, plain_text

__all__ = ["astext", "fromtext", "module_text", "parse", "parse_expr", "plain_text"]
