"""Kernels and norm bounds from data, for stages that were given none."""

from cascada.calibration.beliefs import Calibrated, calibrate, together
from cascada.calibration.fit import Fit
from cascada.calibration.settings import Calibration

__all__ = ["Calibrated", "Calibration", "Fit", "calibrate", "together"]
