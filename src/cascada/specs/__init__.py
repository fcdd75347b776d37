"""Processes from files and names: what SPEC stands for on the command line, and `cascada.load`."""

from cascada.specs.spec import load

__all__ = ["load"]
