"""Regions of values, many at once: boxes (an interval is a box of one dimension) and balls.

Every operation rounds outwards, unless its docstring says otherwise: a returned region contains the exact one.
"""

from dataclasses import dataclass

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, BoolArray
from cascada.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Boxes:
    """n boxes [lower, upper] in ℝ^d; empty where a lower end lies above its upper end."""

    lower: Array  # (n, d)
    upper: Array  # (n, d)

    def __post_init__(self) -> None:
        if self.lower.ndim != 2 or self.lower.shape != self.upper.shape:
            raise ArgumentError(
                f"boxes need lower and upper ends of one shape (n, d); got {self.lower.shape} and {self.upper.shape}."
            )

    @classmethod
    def around(cls, centre: Array, half: Array) -> "Boxes":
        """Boxes with these centres and half-widths."""
        return cls(centre - half, centre + half)

    @property
    def centre(self) -> Array:
        """The midpoints, shape (n, d)."""
        return 0.5 * (self.lower + self.upper)

    @property
    def half(self) -> Array:
        """Half-widths about the rounded midpoints that cover the box, shape (n, d)."""
        centre = self.centre
        half = np.maximum(centre - self.lower, self.upper - centre)
        return np.fmax(half * (1 + 2 * UNIT_ROUNDOFF), 0.0)  # 0 for empty boxes

    @property
    def empty(self) -> BoolArray:
        """Which boxes are empty, shape (n,)."""
        return np.any(self.lower > self.upper, axis=1)

    def widened(self) -> "Boxes":
        """The boxes with their ends moved outwards, by as much as rounding in a short sum can move them inwards."""
        return Boxes(
            self.lower - 8 * UNIT_ROUNDOFF * np.abs(self.lower), self.upper + 8 * UNIT_ROUNDOFF * np.abs(self.upper)
        )

    def intersect(self, other: "Boxes") -> "Boxes":
        """The intersections of box i of both."""
        return Boxes(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def product(self, other: "Boxes") -> "Boxes":
        """The products of box i of both, shape (n, d + d')."""
        return Boxes(np.hstack([self.lower, other.lower]), np.hstack([self.upper, other.upper]))


@dataclass(frozen=True, eq=False)
class Balls:
    """n closed balls in ℝ^d; empty where the radius is negative."""

    centre: Array  # (n, d)
    radius: Array  # (n,)

    def __post_init__(self) -> None:
        if self.centre.ndim != 2 or self.radius.shape != self.centre.shape[:1]:
            raise ArgumentError(
                f"balls need centres (n, d) and radii (n,); got {self.centre.shape} and {self.radius.shape}."
            )

    @property
    def empty(self) -> BoolArray:
        """Which balls are empty, shape (n,)."""
        return self.radius < 0

    def box_hull(self) -> Boxes:
        """The smallest boxes that contain the balls."""
        return Boxes(self.centre - self.radius[:, None], self.centre + self.radius[:, None])

    def product(self, boxes: Boxes) -> "Balls":
        """Balls around ball i times box i: radius sqrt(r² + ‖half‖²)."""
        half = boxes.half
        radius = np.sqrt(self.radius**2 + np.einsum("nj,nj->n", half, half)) * (1 + 4 * UNIT_ROUNDOFF)
        return Balls(np.hstack([self.centre, boxes.centre]), np.where(self.empty, -1.0, radius))

    def intersect(self, other: "Balls") -> "Balls":
        """Balls around the lenses that are common to ball i of both.

        With R1 ≥ R2 at distance d, the lens is widest at t = (d² + R1² − R2²)/(2d) from the centre of the larger ball.
        If that is beyond the centre of the smaller one, the result is the smaller ball itself.
        """
        larger = self.radius >= other.radius
        big, small = np.where(larger, self.radius, other.radius), np.where(larger, other.radius, self.radius)
        centre = np.where(larger[:, None], self.centre, other.centre)
        nearer = np.where(larger[:, None], other.centre, self.centre)  # of the smaller ball
        towards = nearer - centre
        distance = np.linalg.norm(towards, axis=1)
        reach = np.abs(big) + distance
        slack = 16 * UNIT_ROUNDOFF * reach  # of the distance, and of t below

        safe = np.where(distance > 0, distance, 1.0)
        t = 0.5 * (distance + (big - small) * (big + small) / safe)
        waist = np.sqrt(np.maximum((big - t) * (big + t), 0.0) + 4 * slack * reach) + slack
        waist += 4 * UNIT_ROUNDOFF * np.linalg.norm(centre, axis=1)  # of the lens's centre
        # The smaller ball is also kept where rounding makes the ball around the lens no smaller.
        keep = (distance == 0) | (t >= distance) | (waist >= small)
        lens_centre = np.where(keep[:, None], nearer, centre + (t / safe)[:, None] * towards)
        radius = np.where(keep, small, waist)
        disjoint = (distance > big + small + slack) | (small < 0)
        return Balls(lens_centre, np.where(disjoint, -1.0, radius))
