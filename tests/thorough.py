"""How many examples the longest property tests try: a quarter in `make test`, all under CASCADA_THOROUGH=1.

`make soundness` sets that.
"""

import os


def examples(number: int) -> int:
    """So many examples out of a number."""
    return number if os.environ.get("CASCADA_THOROUGH") == "1" else number // 4
