"""passes: passes in the form that scripts expect where our own pipeline does the same work in another form.

One file each, named for what it does; `compat/pass_names.py` says under which name scripts know it. Our own lowering
runs none of them.
"""
