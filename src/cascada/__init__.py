"""Optimise multi-stage processes whose every stage can be observed, with a proven gap to the best."""

__version__ = "0.1.0"

__all__ = ["__version__"]
