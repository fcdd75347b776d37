"""Benchmarks of speed and quality, as ratios to a baseline measured in the same run.

Importing the package sets one BLAS thread, which must happen before the first import of numpy. Run a benchmark as
`python -m benchmarks.<name>`.
"""

import os

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

for _variable in THREAD_VARIABLES:
    os.environ.setdefault(_variable, "1")
