"""Belief about a stage that is read with errors and may do anything else in each category.

Every category has a belief from its own rows. What refutes one of them refutes the stage, so all of them hold the same
evidence.
"""

from cascada.arrays import Array
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.evidence import Evidence
from cascada.confidence.split_belief import SplitBelief


class SplitBoundedBelief(SplitBelief):
    """Beliefs from readings of the inputs without codes, one for each category; see `SplitBelief`."""

    @property
    def bounded(self) -> tuple[BoundedBelief, ...]:
        """The beliefs about the categories."""
        return tuple(part for part in self.parts if isinstance(part, BoundedBelief))

    def spread_over(self, where: Array) -> "SplitBoundedBelief":
        """The same belief, whose common weights are judged at these points (m, d) in every category."""
        others = where[:, self.categories.others]
        return self._mapped(lambda part: part.spread_over(others))

    def refined(self, point: Array) -> "SplitBoundedBelief":
        """The belief with fits whose weights are chosen at a point (d,), for its category."""
        category = int(self.categories.of(point[None])[0])
        return self.with_part(category, self.bounded[category].refined(point[self.categories.others]))

    def refuted_by(self, *evidence: Evidence) -> "SplitBoundedBelief":
        """The belief with this evidence against its assumptions."""
        return self._mapped(lambda part: part.refuted_by(*evidence))

    @property
    def contradictory(self) -> bool:
        """Whether no f agrees with the rows of some fit of a category."""
        return any(part.contradictory for part in self.bounded)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Evidence against the assumptions, with the category where it is about one."""
        return self.bounded[0].evidence
