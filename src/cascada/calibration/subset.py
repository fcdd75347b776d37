"""The observations to which kernels are fitted, if there are many of them.

A fit takes O(n³) time for each of some ten evaluations, and the maximum hardly moves beyond some hundred observations.
So beyond `MOST_FITTED` a fit uses a subset, which follows from the number of observations alone: the newest ones, which
lie where points are chosen now, and earlier ones at equal distances in the order of observation. The posterior always
contains all observations.
"""

import numpy as np

from cascada.arrays import IntArray

#: The largest number of observations of one fit.
MOST_FITTED = 150
_NEWEST = 50


def fitted_rows(count: int) -> IntArray:
    """The indices of the observations to fit to, increasing; all of them if there are at most `MOST_FITTED`."""
    if count <= MOST_FITTED:
        return np.arange(count, dtype=np.int64)
    earlier = np.linspace(0, count - _NEWEST - 1, MOST_FITTED - _NEWEST).round().astype(np.int64)
    return np.append(earlier, np.arange(count - _NEWEST, count, dtype=np.int64))
