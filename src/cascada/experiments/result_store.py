"""A folder of results, one file each, from which an interrupted computation continues.

Files are complete or absent. A file holds its settings and a
checksum. A damaged file or one with other settings counts as absent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cascada.errors import ArgumentError
from cascada.whole_file import write_whole


@dataclass(frozen=True)
class ResultStore:
    """The results in `out`/runs of one set of settings."""

    out: Path
    settings: Mapping[str, Any]

    @classmethod
    def open(cls, out: Path, settings: Mapping[str, Any]) -> "ResultStore":
        """Open or create a folder of results; raises `ArgumentError` if it holds results of other settings."""
        path = out / "settings.json"
        try:
            (out / "runs").mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_whole(path, as_text(settings))
            given = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ArgumentError(f"results cannot be stored in {out}: {error}. Give another folder.") from error
        except ValueError as error:
            raise ArgumentError(f"{path} is damaged: {error}. Delete {out}, or give another folder.") from error
        if given != settings:
            raise ArgumentError(
                f"{out} holds results of other settings ({_difference(given, settings)}). Give another folder, or "
                f"delete this one."
            )
        return cls(out, settings)

    def get(self, name: str) -> Any:
        """The stored result, or None."""
        try:
            found = json.loads(self._path(name).read_text(encoding="utf-8"))
            whole = found["sha256"] == _checksum(found["result"])
            same = found["name"] == name and found["settings"] == self.settings
            return found["result"] if whole and same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, name: str, result: Any) -> None:
        """Store a result."""
        found = {"name": name, "settings": self.settings, "result": result, "sha256": _checksum(result)}
        write_whole(self._path(name), as_text(found))

    def _path(self, name: str) -> Path:
        return self.out / "runs" / f"{name}.json"


def as_text(content: Any) -> str:
    """Deterministic JSON; numbers keep all digits."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _checksum(result: Any) -> str:
    return sha256(json.dumps(result).encode()).hexdigest()


def _difference(given: Any, settings: Mapping[str, Any]) -> str:
    if not isinstance(given, dict):
        return "not readable as settings"
    names = [name for name in {**settings, **given} if given.get(name) != settings.get(name)]
    return ", ".join(f"{name} {given.get(name)} there, {settings.get(name)} now" for name in names)
