"""What the last bits of a number depend on besides the code."""

import platform
from typing import Any

import numpy as np
import scipy
import scipy.linalg  # loads the library that SciPy brings along
from threadpoolctl import threadpool_info


def environment() -> dict[str, Any]:
    """Versions of the libraries, and the instructions of the processor that they use."""
    assert scipy.linalg is not None
    blas = sorted(
        {
            f"{lib['internal_api']} {lib['version']} {lib.get('architecture')}"
            for lib in threadpool_info()
            if lib["user_api"] == "blas"
        }
    )
    simd = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    libc = " ".join(platform.libc_ver())
    return {"numpy": np.__version__, "scipy": scipy.__version__, "blas": blas, "simd": simd, "libc": libc}
