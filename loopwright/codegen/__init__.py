"""From lowered IR to code.

`llvm/` writes LLVM text, which LLVM compiles; `source/` writes C; `math/` has the bodies of exp and its like, for both.
Beside them stands what every backend needs: `with_symbols.py` (what functions are called), `bounded_recursion.py` (how
deep they call themselves), `describe_module.py` (what a module says about itself) and `expression_facts.py` (what may
be computed though it is not needed). `build_key.py` and `compile_cache.py` find what was compiled before. Open
`llvm/make_module.py` first.
"""
