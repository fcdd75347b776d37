"""Finished work in a folder, one file each, so that what was interrupted goes on where it stopped.

A file is either whole or not there: it is written beside its place and moved. It holds the settings it was made with
and a checksum; one that is damaged, or made with others, counts as not there.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cascada.errors import ArgumentError


@dataclass(frozen=True)
class Finished:
    """The results in `out`/runs of one set of settings."""

    out: Path
    settings: Mapping[str, Any]

    @classmethod
    def open(cls, out: Path, settings: Mapping[str, Any]) -> "Finished":
        """The results in a folder, which is made if need be; refused when it holds those of other settings."""
        path = out / "settings.json"
        try:
            (out / "runs").mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write(path, as_text(settings))
            given = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ArgumentError(f"results cannot be kept in {out}: {error}. Give another folder.") from error
        except ValueError as error:
            raise ArgumentError(f"{path} is damaged: {error}. Delete {out}, or give another folder.") from error
        if given != settings:
            raise ArgumentError(
                f"{out} holds results of other settings ({_difference(given, settings)}). Give another folder, or "
                f"delete this one."
            )
        return cls(out, settings)

    def get(self, name: str) -> Any:
        """A finished result, or None."""
        try:
            found = json.loads(self._path(name).read_text(encoding="utf-8"))
            whole = found["sha256"] == _checksum(found["result"])
            same = found["name"] == name and found["settings"] == self.settings
            return found["result"] if whole and same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, name: str, result: Any) -> None:
        """Keep a result."""
        found = {"name": name, "settings": self.settings, "result": result, "sha256": _checksum(result)}
        write(self._path(name), as_text(found))

    def _path(self, name: str) -> Path:
        return self.out / "runs" / f"{name}.json"


def as_text(content: Any) -> str:
    """JSON that is the same for the same content; numbers keep every digit."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave the moved file empty
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _checksum(result: Any) -> str:
    return sha256(json.dumps(result).encode()).hexdigest()


def _difference(given: Any, settings: Mapping[str, Any]) -> str:
    if not isinstance(given, dict):
        return "not readable as settings"
    names = [name for name in {**settings, **given} if given.get(name) != settings.get(name)]
    return ", ".join(f"{name} {given.get(name)} there, {settings.get(name)} now" for name in names)
