"""The live page in a browser while runs arrive, also when the store or the server fails; and access to its server."""

import json
import signal
import socket
import sqlite3
import sys
from contextlib import ExitStack, closing, suppress
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.cli.serve import PORT
from cascada.outwards import no_better
from cascada.problems import by_name
from cascada.study import Study
from tests.forked import Fork
from tests.report.browser import Browser
from tests.report.cases import ODD, odd, proven
from tests.report.servers import COMMAND, Page, ended, open_page, served
from tests.starting import first_line, started
from tests.waiting import LONG, wait_until

# An optimisation in another process, which waits for a line of its standard input after every run.
RUNNING = """
import sys
from cascada.study import Study
from tests.report.cases import proven
study = Study.open(sys.argv[1], "alloy", proven(), algorithm="random_search")
study.optimise(budget=int(sys.argv[2]), progress=False, callbacks=[lambda _: sys.stdin.readline() == ""])
"""

# A process for `cascada run` with a known stage, whose formula the store does not contain.
SLOW = """
import math, time
import cascada as cd
def mix(dose):
    time.sleep(0.25)
    return math.sin(dose)
kernel = cd.SquaredExponential(1.0)
first = cd.Stage("mix", {"dose": cd.Real(-2, 2)}, kernel=kernel, norm_bound=20.0, function=mix)
network = cd.chain(first, cd.Stage("price", known=True, lipschitz=2.0, function=lambda mix: 2 * mix))
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lab.db"


def run(url: str, budget: int, name: str = "alloy", network: Any = None) -> None:
    """Optimise a stored study until it has this many runs."""
    study = Study.open(url, name, network or proven(), algorithm="random_search")
    study.optimise(budget=budget, progress=False)
    study.close()


def check_page(page: Page, server_url: str) -> None:
    """Check that the page reported no errors and requested nothing from other servers."""
    assert page.errors == []
    assert [one for one in page.requested if not one.startswith((server_url, "data:", "blob:"))] == []


def test_the_page_shows_runs_as_they_arrive(browser: Browser, url: str) -> None:
    run(url, 2)
    with served(url) as server, open_page(browser, server.url) as page:
        page.sees(lambda: page.rows() == 2)  # the only study is shown at once
        assert page.text("h1") == "alloy"
        running = Fork("-c", [RUNNING, url, "9"])
        assert running.stdin is not None
        gaps = set()
        for count in range(3, 10):
            page.sees(lambda count=count: page.rows() == count)  # type: ignore[misc]
            if count in (3, 6, 9):  # a run is shown at once; a gap when it is computed, with its number of runs
                label = f"gap, from {count} complete runs"
                page.sees(lambda label=label: page.text("[data-label=gap] dt") == label)  # type: ignore[misc]
                gaps.add(page.text("[data-fact=gap]"))
            running.stdin.write("go on\n")
            running.stdin.flush()
        assert (running.communicate(timeout=LONG), running.returncode) == (("", ""), 0)
        page.sees(lambda: "Figures from 9 complete runs." in page.text("#computed"))
        assert page.text("[data-label='this is'] dt") == "this is, from 9 complete runs"
        study = Study.open(url, "alloy")
        best, shown = study.best_trial, study.certificate().shown
        assert best is not None
        assert best.value is not None
        assert shown is not None
        assert page.text("[data-fact='best value']") == no_better(best.value, 8)
        assert page.text("[data-fact=runs]") == "9 complete of 9"
        assert page.text("[data-fact=gap]") == shown.gap
        assert page.text("tr.best td >> nth=0") == str(best.number)
        assert len(gaps) > 1
        page.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # draws all figures
        figures = page.page.locator("#figures figure").count()
        assert page.page.locator("figure:has(.main-svg)").count() == figures > 4
        assert "no setting gives more (proven)" in page.drawn("history")
        assert page.text("#status") == "Live."
        check_page(page, server.url)


def test_names_are_never_interpreted_as_markup_or_as_addresses(browser: Browser, url: str) -> None:
    names = [ODD, "a/b?c=%41&study=x#d + é 漢", "."]
    for name in names:
        run(url, 2, name, odd())
    with served(url) as server, open_page(browser, server.url) as page:
        page.sees(lambda: page.page.locator("#studies a").count() == len(names))
        for i, name in enumerate(names):
            page.page.goto(server.url)
            page.page.locator("#studies a").nth(i).click()
            page.sees(lambda name=name: page.text("h1") == name and page.rows() == 2)  # type: ignore[misc]
            assert page.page.title() == f"{name} · cascada"
        page.page.goto(f"{server.url}?study=%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        page.sees(lambda: page.page.locator("figure[data-id=parallel] .main-svg").count())
        assert ODD in page.text("#trials")
        page.page.goto(f"{server.url}?study=")
        page.says("There is no study named ''")
        check_page(page, server.url)


def test_a_new_study_appears_in_the_list_of_open_pages(browser: Browser, url: str) -> None:
    run(url, 2, "first")
    run(url, 2, "second")
    with (
        served(url) as server,
        open_page(browser, server.url) as index,
        open_page(browser, f"{server.url}?study=third") as third,
    ):
        index.sees(lambda: index.page.locator("#studies a").all_inner_texts() == ["first", "second"])
        third.says("There is no study named 'third' in this store (yet).")
        index.page.locator("#studies a").nth(1).focus()
        run(url, 3, "third")
        index.sees(lambda: index.page.locator("#studies a").count() == 3)
        assert index.text("#studies a:focus") == "second"
        third.sees(lambda: third.rows() == 3)
        third.says("Live.")
        assert third.text("#studies a[aria-current]") == "third"
        check_page(index, server.url)
        check_page(third, server.url)


def test_the_page_reconnects_to_a_restarted_server(browser: Browser, url: str) -> None:
    run(url, 2)
    with browser.page() as page:
        seen = Page(page, [], [])
        with served(url) as server:
            port = server.port
            page.goto(server.url)
            seen.sees(lambda: seen.rows() == 2)
        seen.says("Connection lost, trying again.")
        run(url, 5)
        with served(url, port=port):
            seen.sees(lambda: seen.rows() == 5)
            seen.says("Live.")


def test_errors_of_the_store_are_shown_until_they_are_resolved(browser: Browser, url: str, tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    with served(url) as server, open_page(browser, f"{server.url}?study=alloy") as page:
        page.says("there is no file")
        assert not page.page.locator("#command").is_visible()
        with open_page(browser, server.url) as index:
            index.says("there is no file")
            assert (index.text("h1"), index.page.locator("main").is_visible()) == ("cascada", False)
        assert not file.exists()  # the live page creates nothing
        run(url, 3)
        page.sees(lambda: page.rows() == 3)
        page.says("Live.")
        wait_until(lambda: _emptied_log(file), "everything is in the file itself")
        whole = file.read_bytes()
        file.write_text("no database at all " * 100)
        page.says("the file is not a database of SQLite")
        assert page.rows() == 3
        file.write_bytes(b"")
        page.says("This is not a cascada store (yet): the file is empty")
        file.unlink()
        page.says("there is no file")
        file.write_bytes(whole)
        page.says("Live.")
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("PRAGMA locking_mode=EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("UPDATE cascada_events SET at = at")
        page.says("database is locked")
        holder.execute("ROLLBACK")
        holder.close()
        page.says("Live.")
        for side in tmp_path.glob("lab.db?*"):
            side.unlink()
        file.unlink()
        run(url, 1)  # another store, with a study of the same name
        page.sees(lambda: page.rows() == 1)
        damaged = sqlite3.connect(file)
        damaged.execute("UPDATE cascada_events SET data = '{\"outputs\": 1}' WHERE kind = 'told'")
        damaged.execute("UPDATE cascada_events SET at = at + 1 WHERE number = 0")  # so that the log is read again
        damaged.commit()
        damaged.close()
        page.says("cannot follow")
        check_page(page, server.url)


def _emptied_log(file: Path) -> bool:
    """Move what is in the write-ahead log into the database; return whether no reader prevents it.

    A log that is left, because the server or its figures were reading when the last writer closed, would hide what is
    written to the file afterwards.
    """
    with closing(sqlite3.connect(file)) as connection:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def test_a_hidden_page_disconnects_and_resumes_when_visible(browser: Browser, url: str) -> None:
    run(url, 3)
    hide = "is => { Object.defineProperty(document, 'hidden', { value: is, configurable: true }); watch(); }"
    with served(url) as server, open_page(browser, server.url) as page:
        page.sees(lambda: "from 3 complete runs" in page.text("#computed"))
        page.page.evaluate("begun = []; beginTable = showStatus = (...all) => begun.push(lost, all)")
        page.page.evaluate(hide, True)
        page.sees(lambda: page.page.evaluate("source === null"))
        run(url, 5)
        assert page.rows() == 3
        page.page.evaluate(hide, False)
        page.sees(lambda: page.rows() == 5)
        assert page.text("[data-fact=gap]") != "…"  # the page was not reset
        assert not any(page.page.evaluate("begun.flat(2)"))  # nor was the connection reported as lost


def test_runs_are_shown_before_figures(browser: Browser, url: str) -> None:
    run(url, 2)
    with served(url) as server, open_page(browser, server.url) as page:
        page.sees(page.page.locator(".main-svg").count)  # plotly is loaded, so that its request is not under way
        held: list[Any] = []
        page.page.route("**/plotly.min.js*", lambda route: held.extend([route]))
        page.page.reload()
        page.sees(lambda: held and "Figures from" in page.text("#computed"))
        page.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # too early
        held[0].continue_()
        page.sees(lambda: page.page.locator("figure:not(:has(.main-svg))").count() == 0)
        page.page.evaluate("""draws = [];  // slow drawings, and fifty messages a second
            Plotly.react = (plot) => {
                const begun = performance.now();
                while (performance.now() < begun + 100);
                if (plot.parentNode.dataset.id === "history") draws.push([begun, performance.now()]);
            };
            for (let n = 2; n < 52; n += 1) setTimeout(() => RECEIVE.runs(
                { facts: [], best: 1, rows: [[n, "complete", 0, 1, 1, 1]] }), 20 * n);""")
        page.sees(lambda: page.rows() == 52)
        page.sees(lambda: page.page.evaluate("figureOf.get(holderOf('history').firstChild).data[0].x.length") == 52)
        draws = page.sees(lambda: page.page.evaluate("draws"))
        took = [ended - begun for begun, ended in draws]
        # At least half of the time nothing is drawn. A drawing scheduled before another began may follow it at once.
        assert sum(took) <= 0.5 * (draws[-1][1] - draws[0][0]) + 1.1 * max(took)
        page.page.evaluate("RECEIVE.runs({ facts: [['gap', 'none']], best: 1, rows: [], refuted: true })")
        assert (page.text("[data-label=gap]"), page.text("#words")) == ("gap\nnone", "")  # at once
        assert page.page.evaluate("historyNow().figure.data.length") == 2  # no bound


def test_a_study_with_a_known_stage_needs_the_spec_option(browser: Browser, url: str) -> None:
    run(url, 3, "sum", by_name("certified-known").network)
    with served(url) as server, open_page(browser, server.url) as page:
        page.says("Start `cascada serve` with --spec SPEC.")
        check_page(page, server.url)  # with --spec: see test_a_run_with_serve_shows_a_page


def test_the_page_is_never_wider_than_the_window(browser: Browser, url: str) -> None:
    run(url, 3, "a name that is long " * 9 + "!")
    run(url, 1, "b" * 200)
    with served(url) as server:
        for address, width in ((server.url, 360), (f"{server.url}?study={'b' * 200}", 360), (server.url, 1200)):
            with open_page(browser, address, width=width, height=800) as page:
                page.sees(lambda: page.page.locator("#studies a").count() == 2)
                assert page.page.evaluate("document.documentElement.scrollWidth") <= width


# ---- without a browser


def test_the_server_is_read_only_and_answers_this_machine_only(url: str, tmp_path: Path) -> None:
    run(url, 2)
    before = (tmp_path / "lab.db").read_bytes()
    with served(url) as server:
        with server.answer() as answer:
            assert answer.status == 200
            policy = answer.headers["content-security-policy"]
            assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
            assert "eval" not in policy
            for name, value in (
                ("cross-origin-resource-policy", "same-origin"),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("cache-control", "no-store"),
            ):
                assert answer.headers[name] == value
        port = server.port
        for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert server.status(host=host) == 200
        evil = f"evil.example:{port}"
        for host in (evil, "127.0.0.1", f"127.0.0.1.{evil}", f"127.0.0.1:{port + 1}", ""):
            for path in ("/", "/events", "/page.js", "/nothing"):
                assert server.status(path, host=host) == 421, host
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            for path in ("/", "/events"):
                assert server.status(path, method) == 405
        for path in ("/", "/events", "/page.js"):
            with server.answer(path, "HEAD") as answer:
                assert (answer.status, answer.read()) == (200, b"")
        for site in ("cross-site", "same-site"):
            assert server.status("/events", sec_fetch_site=site) == 403
            assert server.status("/page.js", sec_fetch_site=site) == 403
            assert server.status("/", sec_fetch_site=site) == 200  # other sites may link to the page
        assert server.status("/events?study=alloy", sec_fetch_site="same-origin") == 200
        assert server.status("/page.py") == 404
        assert server.status("/../../etc/passwd") == 404
        with pytest.raises(ConnectionRefusedError):  # the server listens on 127.0.0.1 only
            socket.create_connection((_address(), port), timeout=LONG).close()
        with server.answer("/events?study=alloy") as stream:
            _read_until(stream, b"event: figures")  # the whole store has been read
    assert (tmp_path / "lab.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["lab.db"]


# Few file descriptors, and a short time until an idle connection is closed.
_LIMITED = """
import resource
from cascada.cli.main import app
from cascada.report.live import app as live, connection
connection.IDLE, live.ALIVE = 0.4, 0.5
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
app()
"""


def test_idle_connections_are_closed_and_the_page_stays_reachable_without_descriptors(url: str) -> None:
    run(url, 2)
    with served(url, command=[sys.executable, "-c", _LIMITED]) as server, ExitStack() as stack:
        beginnings = [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n"]  # no request, and parts of one
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), LONG)) for _ in range(80)]
        for i, connection in enumerate(idle):
            with suppress(OSError):
                connection.sendall(beginnings[i % 3])
        assert server.status() == 200
        for connection in idle:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        with server.answer("/events?study=alloy") as stream:  # a stream that is open is not idle
            _read_until(stream, b"event: alive")
            _read_until(stream, b"event: alive")


def test_the_oldest_idle_connection_makes_room_for_a_new_one(url: str) -> None:
    few = (
        _LIMITED.replace("0.4", "1e9").replace("(48, 48)", "(256, 256)").replace("app()", "connection.MOST = 5; app()")
    )
    with served(url, command=[sys.executable, "-c", few]) as server, ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), LONG)) for _ in range(6)]
        assert server.status() == 200
        with suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""


def _address() -> str:
    """Return an address of this machine other than 127.0.0.1."""
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        found = "127.0.0.1"
    return found if found != "127.0.0.1" else "127.0.0.2"


def _read_until(stream: HTTPResponse, words: bytes) -> None:
    while words not in (line := stream.readline()):
        assert line, "the stream ended"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_cleanly_while_a_page_is_open(url: str, how: signal.Signals) -> None:
    run(url, 2)
    with served(url, command=COMMAND) as server, server.answer("/events?study=alloy") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        _read_until(stream, b"event: runs")
        assert ended(server.process, how) == (0, "")  # SIGTERM ends the servers of all other tests


def test_the_server_continues_after_a_signal_that_it_was_started_to_ignore(url: str) -> None:
    """As with `nohup cascada serve ... &` in a script after the terminal is closed."""
    run(url, 2)
    with (
        served(url, ignoring=[signal.SIGINT, signal.SIGHUP], command=COMMAND) as server,
        server.answer("/events?study=alloy") as stream,
    ):
        _read_until(stream, b"event: runs")
        server.process.send_signal(signal.SIGHUP)
        server.process.send_signal(signal.SIGINT)
        for runs in (3, 4):
            run(url, runs)
            _read_until(stream, b"event: runs")


def test_invalid_calls_fail_with_one_line_and_create_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CASCADA_STORAGE", raising=False)
    call = partial(CliRunner().invoke, app)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = call(["serve", "--storage", url, "--port", str(port)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cascada: port {port} is taken")
    assert "--port" in done.stderr
    assert done.stderr.count("\n") == 1
    for arguments, message in (
        (["serve"], "which store? Give --storage URL"),
        (["serve", "--storage", "lab.db"], "a store is a URL like"),
        (["run", "certified-chain", "--serve"], "give --storage URL"),
        (["run", "certified-chain", "--serve", "--storage", "lab.db"], "a store is a URL like"),
    ):
        done = call(arguments)
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_serve_shows_a_page(browser: Browser, url: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    command = ["run", f"{tmp_path}/slow.py:network", "--storage", url, "--study", ODD, "--budget", "99999"]
    running = Fork("cascada", [*command, "--tolerance", "0", "--serve", "--json"])
    try:
        line = first_line(running, running.stderr)
        address = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        with open_page(browser, address) as page:
            page.sees(lambda: page.text("h1") == ODD and page.rows() > 0)
            page.sees(lambda: page.page.locator("[data-label=gap]").get_by_text("gap, from").count())
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=LONG)
            assert (running.returncode, err) == (0, "")
            assert (json.loads(out)["study"], json.loads(out)["status"]) == (ODD, "interrupted")
            page.says("Connection lost, trying again.")  # `cascada serve` shows it from now on
            assert page.rows() > 0
    finally:
        ended(running, signal.SIGKILL)


def test_the_page_of_a_run_ends_when_the_run_is_killed(url: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    command = [*COMMAND, "run", f"{tmp_path}/slow.py:network", "--storage", url, "--budget", "500", "--serve"]
    command += ["--tolerance", "0"]
    with socket.socket() as taken:
        held = taken.connect_ex(("127.0.0.1", PORT)) != 0  # otherwise another test is using it
    with socket.socket() as taken:
        if held:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
        running = started(command)
        try:
            address = next(word for word in first_line(running).split() if word.startswith("http://127.0.0.1:"))
            port = int(address.split(":")[2].split("/")[0])
            assert port != PORT or not held  # a taken port is replaced by a free one
            assert _answers(port)
        finally:
            ended(running, signal.SIGKILL)
        wait_until(lambda: not _answers(port), "the page has ended")


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=LONG).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True
