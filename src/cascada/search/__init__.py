"""Search for the largest upper bound: over candidates, and over boxes by branch and bound or gradient ascent."""

from cascada.search.ascent import Joint, ascend
from cascada.search.bounds import CellBounds, ObjectiveBounds
from cascada.search.box import best_in_box
from cascada.search.branch_and_bound import Outcome, SearchBudget, search
from cascada.search.candidates import Candidates, largest
from cascada.search.leaves import Leaves

__all__ = [
    "Candidates",
    "CellBounds",
    "Joint",
    "Leaves",
    "ObjectiveBounds",
    "Outcome",
    "SearchBudget",
    "ascend",
    "best_in_box",
    "largest",
    "search",
]
