"""How much the longest tests do: less in `make test`, all under CASCADA_THOROUGH=1, which `make soundness` sets."""

import os

THOROUGH = os.environ.get("CASCADA_THOROUGH") == "1"


def examples(number: int) -> int:
    """The number of examples of a property test: all of them, or a quarter."""
    return number if THOROUGH else number // 4
