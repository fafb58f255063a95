"""From lowered IR to machine code: `llvm/` (text, compiled by LLVM) and `math/` (function bodies all backends share)."""
