"""Loading of processes from files and names: the argument SPEC of the command line, and `cascada.load`."""

from cascada.specs.spec import load

__all__ = ["load"]
