"""Search for the largest upper bound: over candidates, and over boxes by branch and bound or gradient ascent."""

from cascada.search.ascent import ascend, ascend_mean, refine_mean
from cascada.search.bounds import CellBounds, ObjectiveBounds
from cascada.search.box import best_in_box
from cascada.search.branch_and_bound import Outcome, SearchBudget, search
from cascada.search.candidates import Candidates, largest
from cascada.search.joint import Joint
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
    "ascend_mean",
    "best_in_box",
    "largest",
    "refine_mean",
    "search",
]
