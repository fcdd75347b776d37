"""Loading of a SPEC: a built-in problem, `package.module:object`, `file.py:object`, or `file.toml`."""

import ast
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]

from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean
from cascada.network import Network
from cascada.problems import PROBLEMS, Problem, by_name


def load(spec: str) -> Network:
    """Return the network that a SPEC names: a Network, a Problem, a callable that returns one of them, or a file.

    Raises `ArgumentError` if the SPEC cannot be loaded or is something else.
    """
    if spec.lower().endswith(".toml"):
        from cascada.specs.toml_file import load_toml  # imports pydantic, which takes time

        return load_toml(Path(spec))
    place, colon, name = spec.rpartition(":")
    if place.lower().endswith(".toml"):
        raise ArgumentError(f"a TOML file describes one whole process; got {spec!r}. Give {place}, without a colon.")
    if not colon:
        if spec in PROBLEMS:
            return by_name(spec).network
        raise ArgumentError(
            f"SPEC must be a built-in problem (see `cascada problems`), 'package.module:object', 'file.py:object' or "
            f"'file.toml' (`cascada new file.toml` writes one to start from); got {spec!r}{_meant(spec)}."
        )
    module = _load_file(Path(place)) if place.endswith(".py") else _import(place)
    try:
        found = getattr(module, name)
    except AttributeError:
        here = _processes(module)
        hint = did_you_mean(name, here) or (f"; it has {', '.join(here)}" if here else "")
        raise ArgumentError(f"{place} has no object {name!r}{hint}.") from None
    if callable(found) and not isinstance(found, Network | Problem):
        try:
            found = found()
        except TypeError as error:
            raise ArgumentError(
                f"{spec} must be a Network or a Problem, or return one when called: {error}."
            ) from error
    return _as_network(found, spec)


def _meant(spec: str) -> str:
    """A hint about a SPEC without an object: the object of a file that is meant, or a problem with a similar name."""
    if not spec.lower().endswith(".py"):
        return did_you_mean(spec, PROBLEMS)
    if not Path(spec).is_file():
        return f"; and there is no file {spec}"
    here = _objects_in(Path(spec))
    return f" (did you mean {spec}:{here[0]}?)" if len(here) == 1 else f"; name an object, as in {spec}:network"


def _objects_in(path: Path) -> list[str]:
    """The names in a file that look like processes: assigned the result of a call that makes one. It is not run."""
    makers = {"chain", "feed_forward", "multi_output_chain", "Network", "Problem"}
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return []
    found = []
    for line in tree.body:
        value = line.value if isinstance(line, ast.Assign) else None
        if isinstance(line, ast.Assign) and isinstance(value, ast.Call):
            made = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
            found += [target.id for target in line.targets if isinstance(target, ast.Name) and made in makers]
    return found


def _processes(module: ModuleType) -> list[str]:
    """The names of networks and problems in a module."""
    return [name for name, value in vars(module).items() if isinstance(value, Network | Problem)]


def _as_network(found: Any, spec: str) -> Network:
    network = found.network if isinstance(found, Problem) else found
    if not isinstance(network, Network):
        raise ArgumentError(f"{spec} must be a Network or a Problem, or return one; got {type(found).__name__}.")
    return network


def _import(name: str) -> ModuleType:
    sys.path.insert(0, "")
    try:
        return import_module(name)
    except ImportError as error:
        raise ArgumentError(f"could not import {name!r}: {error}.") from error
    finally:
        sys.path.remove("")


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module and return it; add its folder to sys.path, so that it can import files next to it."""
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}.")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Compiled from its source each time: cached byte code is not renewed if a file of the same length is written again
    # within a second, and the process would be the old one.
    code = SourceFileLoader(path.stem, str(path)).source_to_code(path.read_bytes(), str(path))
    module = module_from_spec(ModuleSpec(path.stem, None, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(code, module.__dict__)
    cloudpickle.register_pickle_by_value(module)  # workers on other machines do not have the file
    return module
