"""What a search is worth: the speed of kernels after k measurements, beside the rules and the best library.

    python -m benchmarks.search run --trials 64 --threads 1 --out FILE.json
    python -m benchmarks.search run --only 'softmax|GEMM' --space sketches
    python -m benchmarks.search show FILE.json [--picture OUT.png]

`tasks.py` has the programs, `curve.py` runs one search and notes the best after each trial, `cli.py` is the command.
"""
