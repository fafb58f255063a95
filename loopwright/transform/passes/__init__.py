"""The passes of the pipelines, one file each; `../pipeline.py` has their order."""
