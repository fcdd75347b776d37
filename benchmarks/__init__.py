"""Speed, as ratios against a peer measured in the same run.

Importing the package asks for one BLAS thread, which has to happen before the first import of numpy: run a benchmark
as `python -m benchmarks.<name>`.
"""

import os

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

for _variable in THREAD_VARIABLES:
    os.environ.setdefault(_variable, "1")
