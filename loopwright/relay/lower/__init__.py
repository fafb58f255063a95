"""Lowering graphs: a fused function becomes one kernel, and a graph becomes a program of kernel launches.

`lower_function.py` chains the operators' computes into a PrimFunc (`kernel_size_params.py` gives it the sizes it uses);
`lower_to_program.py` writes the launches, in order; `concat_in_place.py` has the inputs of a concatenation written
where they belong, so that nothing is copied.
"""
