"""Files that are written whole or not at all."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cascada.network import chain
from cascada.study import Study
from cascada.whole_file import unwritten, whole_file, write_whole
from tests.forked import Fork
from tests.network.cases import X, stage
from tests.waiting import LONG

#: Sets a limit to the size of files, which a disk that is full is like, and calls the command.
LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from cascada.cli.main import app
app(sys.argv[2:])
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "old\n")
    before = path.stat().st_ino
    write_whole(path, "nöw\r\n")
    assert path.read_bytes() == "nöw\r\n".encode()
    assert path.stat().st_ino != before
    assert names(tmp_path) == ["report.html"]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_what_interrupts_the_writing_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def write() -> None:
        with whole_file(path) as file:
            file.write(b"half of it")
            file.flush()
            raise error

    with pytest.raises(type(error)):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.html"]


def test_a_failed_synchronisation_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input/output error") as error:
        write_whole(path, "new")
    assert error.value.filename == str(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.html"]


def test_permissions_are_kept_and_new_files_have_the_usual_ones(tmp_path: Path) -> None:
    path, usual = tmp_path / "secret", tmp_path / "usual"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(path, "new")
    usual.write_text("")
    write_whole(tmp_path / "new", "new")
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, tmp_path / "new", usual)]
    assert modes == [0o640, modes[2], modes[2]]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link, dangling = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_text("old")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "folder" / "later")
    for path in (link, dangling):
        write_whole(path, "new")
        assert path.is_symlink()
        assert path.read_text() == "new"
    assert names(tmp_path / "folder") == ["later", "target"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_whole(Path(os.devnull), "nowhere")


def test_standard_output_is_written_to_by_its_name(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = "import sys; from pathlib import Path; from cascada.whole_file import write_whole\n"
    script += "write_whole(Path('/dev/stdout'), 'one\\n'); print('two')"
    with out.open("w") as file:
        subprocess.run([sys.executable, "-c", script], stdout=file, check=True)
    assert "two" in out.read_text()
    piped = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"one\ntwo\n"


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    write_whole(path, "first", new=True)
    with pytest.raises(FileExistsError):
        write_whole(path, "second", new=True)

    def write() -> None:
        with whole_file(tmp_path / "other.toml", new=True) as file:
            file.write(b"mine")
            (tmp_path / "other.toml").write_text("theirs")  # by another process

    with pytest.raises(FileExistsError):
        write()
    assert path.read_text() == "first"
    assert (tmp_path / "other.toml").read_text() == "theirs"
    assert names(tmp_path) == ["new.toml", "other.toml"]


def test_a_new_file_is_written_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new.toml"

    def fails(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fails)
    write_whole(path, "first", new=True)
    with pytest.raises(FileExistsError):
        write_whole(path, "second", new=True)
    assert path.read_text() == "first"
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(PermissionError):
        write_whole(tmp_path / "other.toml", "text", new=True)
    assert names(tmp_path) == ["new.toml"]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no folder in memory")
def test_a_file_in_memory_is_replaced_by_a_new_one() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "report.html"
        path.write_text("old")
        before = path.stat().st_ino
        write_whole(path, "new")
        assert path.read_text() == "new"
        assert path.stat().st_ino != before, "it was written over, and a full disk would have left half of it"


def test_names_of_the_greatest_length_are_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_whole(path, "text")
    assert path.read_text() == "text"
    with pytest.raises(OSError, match="too long"):
        write_whole(tmp_path / ("n" * 256), "text")
    assert names(tmp_path) == [path.name]


def test_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    full = OSError(errno.ENOSPC, "No space left on device")
    assert unwritten(path, full) == (
        f"cannot write {path}: No space left on device. Free some space on the disk, or give a file on another one."
    )
    path.write_text("old")
    assert unwritten(path, full).endswith("The file is as it was before.")


@pytest.mark.parametrize("command", ["export", "report", "hard"])
def test_a_command_on_a_full_disk_leaves_the_old_file(tmp_path: Path, command: str) -> None:
    url = f"sqlite:///{tmp_path}/alloy.db"
    study = Study.open(url, "alloy", chain(stage("f", controls=X)), algorithm="random_search")
    for i in range(5):
        study.add_trial({"x": 0.1 * i}, {"f": 0.01 * i})
    study.close()
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / ("figure.svg" if command == "hard" else "file")
    out.write_text("old")
    arguments = ["--storage", url, "--study", "alloy", "--out", str(out)]
    if command == "hard":
        arguments = ["--figure", str(out)]
    called = Fork("-c", [LIMITED, "700", command, *arguments], cwd=tmp_path)
    _, errors = called.communicate(timeout=LONG)
    assert called.returncode in (1, 2), errors
    assert "File too large" in errors
    assert "Traceback" not in errors
    assert out.read_text() == "old"
    assert names(tmp_path / "out") == [out.name]
