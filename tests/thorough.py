"""The size of the longest tests: reduced in `make test`, full under CASCADA_THOROUGH=1, which `make soundness` sets."""

import os

THOROUGH = os.environ.get("CASCADA_THOROUGH") == "1"


def examples(number: int) -> int:
    """Return the number of examples of a property test: all of them, or a tenth, but no fewer than ten."""
    return number if THOROUGH else max(number // 10, min(number, 10))
