"""What a shell is offered for the values of options and arguments."""

from pathlib import Path

from cascada.algorithms import NAMES


def algorithms_beginning_with(incomplete: str) -> list[str]:
    """Names of algorithms."""
    return [name for name in NAMES if name.startswith(incomplete)]


def specs_beginning_with(incomplete: str) -> list[str]:
    """Names of built-in problems, and files that may describe a process."""
    from cascada.problems import PROBLEMS  # imports all of them

    folder, _, begin = incomplete.rpartition("/")
    place = Path(folder or ("/" if incomplete.startswith("/") else "."))
    files = sorted(path for path in place.glob(f"{begin}*") if path.suffix in (".toml", ".py") or path.is_dir())
    before = f"{folder}/" if "/" in incomplete else ""
    found = [f"{before}{path.name}{'/' if path.is_dir() else ''}" for path in files]
    return [*(name for name in PROBLEMS if name.startswith(incomplete)), *found]
