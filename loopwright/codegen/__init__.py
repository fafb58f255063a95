"""From lowered IR to machine code: `llvm/` (text, compiled by LLVM) and `math/` (bodies all backends share)."""
