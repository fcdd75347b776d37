"""Files that are written whole or not at all: a full disk or a crash leaves the file that was there before."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

__all__ = ["FULL", "unwritten", "whole_file", "write_whole"]

#: Errors that say that a disk takes no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, text: str, *, new: bool = False, private: bool = False) -> None:
    """Write text in UTF-8 with the line ends that it has; `OSError` if it cannot be written, see `whole_file`."""
    with whole_file(path, new=new, private=private) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def whole_file(path: Path, *, new: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place at `path` when the block ends, and never if it raises.

    The file before keeps its permissions, and a symbolic link stays one. `new`: raise `FileExistsError` if there is a
    file. `private`: only its owner may read a file that was not there before. What is not a file (a pipe, a terminal,
    `/dev/stdout`) is written to as it is.
    """
    if new and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    if _is_stream(path):
        with path.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    temporary, descriptor = _created_beside(target, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            _keep_permissions(target, file.fileno())
            os.fsync(file.fileno())  # otherwise a power cut could leave an empty file
        if new:
            _put_new(temporary, target)
        else:
            os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        error.filename = str(path)  # a write or a rename names another file, or none
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def unwritten(path: Path, error: OSError) -> str:
    """A sentence that says why a file was not written and what to do."""
    reason = error.strerror or str(error)
    remedies = {
        errno.ENOSPC: "Free some space on the disk, or give a file on another one",
        errno.EDQUOT: "Delete something of yours on this disk, or give a file on another one",
        errno.EFBIG: "Give a file on a disk that takes larger files",
        errno.ENOENT: "Create its folder first, or give another path",
    }
    remedy = remedies.get(error.errno or 0, "Give another path, or correct this")
    kept = " The file is as it was before." if os.path.isfile(path) else ""
    return f"cannot write {path}: {reason}. {remedy}.{kept}"


def _is_stream(path: Path) -> bool:
    """Whether this is no file that could be replaced: a pipe or a device, or a descriptor of this process."""
    # What a shell has redirected to a file is a descriptor, too. Other files of /dev are files: those of /dev/shm.
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _created_beside(target: Path, mode: int) -> tuple[Path, int]:
    """A new empty file in the same folder, with these permissions less those of the umask, and its descriptor."""
    for number in count():
        # Short, as the target's name may have the greatest length; with a dot, as listings need not show it.
        temporary = target.with_name(f".{target.name[:50]}.{os.getpid()}-{number}")
        with suppress(FileExistsError):
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
            return temporary, os.open(temporary, flags, mode)
    raise AssertionError("unreachable")


def _put_new(temporary: Path, target: Path) -> None:
    """Give a file its name; `FileExistsError` if another process was quicker."""
    try:
        os.link(temporary, target)  # unlike a rename, it fails if there is a file
    except FileExistsError:
        raise
    except OSError:  # a file system without links: an empty file keeps the name until the rename
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            os.replace(temporary, target)
        except OSError:
            target.unlink()
            raise


def _keep_permissions(target: Path, descriptor: int) -> None:
    """Give a new file the owner and the permissions of the one that it replaces, as far as this is allowed."""
    with suppress(OSError, AttributeError):  # a new file, or a system without these calls
        before = os.stat(target)
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, where folders can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
