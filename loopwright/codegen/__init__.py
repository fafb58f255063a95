"""From lowered IR to code: `llvm/` (text, compiled by LLVM), `source/` (C), `math/` (bodies all backends share)."""
