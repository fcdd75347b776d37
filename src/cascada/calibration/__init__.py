"""Calibration: kernels and norm bounds estimated from data, for stages that declare none."""

from cascada.calibration.beliefs import Calibrated, calibrate, stage_predictions
from cascada.calibration.fit import Fit
from cascada.calibration.settings import Calibration

__all__ = ["Calibrated", "Calibration", "Fit", "calibrate", "stage_predictions"]
