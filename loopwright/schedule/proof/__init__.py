"""The proof: whether a step keeps every value, or the smallest case in which it does not.

Open `find_mismatch.py` first (`engine/prove_step.py` is where a step is proved): it compares two versions of a program
through their reaching writes (`reaching_writes.py`), `lemmas.py` and `same_source.py` are the quick ways to yes,
`mismatch.py` turns a no into a witness. The other files are one condition each, named for it.
docs/how_the_proof_works.md explains all.
"""
