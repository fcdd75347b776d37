"""The ``cascada`` command.

Each command is a function in a file of its own, listed in :data:`COMMANDS` and imported only when it
is called (or listed by ``--help``), so that no command waits for the imports of another one.

Exit codes: 0 success, 1 failure, 2 invalid arguments.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cascada import __version__
from cascada.cli.strict_numbers import make_strict
from cascada.cli.terminal import message, say
from cascada.errors import ArgumentError, CascadaError
from cascada.near_names import did_you_mean
from cascada.whole_file import FULL, unwritten

__all__ = ["COMMANDS", "app"]

#: Name of a command → ``module:function``; the function's signature is the command's options.
COMMANDS: Mapping[str, str] = {
    "abandon": "cascada.cli.fail:abandon",
    "add": "cascada.cli.add:add",
    "ask": "cascada.cli.ask:ask",
    "bench": "cascada.cli.bench:bench",
    "best": "cascada.cli.best:best",
    "bounds": "cascada.cli.bounds:bounds",
    "correct": "cascada.cli.correct:correct",
    "delete": "cascada.cli.studies:delete",
    "demo": "cascada.cli.demo:demo",
    "enqueue": "cascada.cli.enqueue:enqueue",
    "export": "cascada.cli.export:export",
    "fail": "cascada.cli.fail:fail",
    "hard": "cascada.cli.hard:hard",
    "import": "cascada.cli.import_:import_",
    "measure": "cascada.cli.measure:measure",
    "new": "cascada.cli.new:new",
    "norms": "cascada.cli.norms:norms",
    "next": "cascada.cli.next:next_",
    "problems": "cascada.cli.problems:problems",
    "rename": "cascada.cli.studies:rename",
    "report": "cascada.cli.report:report",
    "reproduce": "cascada.cli.reproduce:reproduce",
    "retract": "cascada.cli.correct:retract",
    "revise": "cascada.cli.revise:revise",
    "run": "cascada.cli.run:run",
    "serve": "cascada.cli.serve:serve",
    "status": "cascada.cli.status:status",
    "studies": "cascada.cli.studies:studies",
    "tell": "cascada.cli.tell:tell",
    "tell-stage": "cascada.cli.tell_stage:tell_stage",
    "trials": "cascada.cli.trials:trials",
    "worker": "cascada.cli.worker:worker",
}

#: Commands whose arguments may be negative numbers, which look like options.
_TAKES_NUMBERS = ("correct", "measure", "tell-stage")
#: Errors of calls, which quote arguments; of Typer's own copy of click, or of click itself.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]
#: What ends a command without being an error.
_Exit = (typer.Exit, typer.Abort)


# The signatures are click's. Typer annotates them with its own copy of click, which mypy treats as other classes.
class LazyCommands(TyperGroup):
    """A group that imports a command when it is needed and reports a :class:`CascadaError` in one line."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        """Return the names of all commands, in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # noqa: ARG002
        """Import and return the command of that name; return None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name].split(":")
        command = typer.Typer(add_completion=False)
        context = {"ignore_unknown_options": cmd_name in _TAKES_NUMBERS}
        called = getattr(import_module(module), function)
        command.command(cmd_name, context_settings=context)(called)
        made = typer.main.get_command(command)
        make_strict(made, called)
        return made

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the options before the command."""
        with _short_usage_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the chosen command; print a `CascadaError` as one line, without a traceback, and exit with 1 or 2."""
        try:
            with _plain_warnings(), _short_usage_errors():
                return super().invoke(ctx)
        except CascadaError as error:
            _report(str(error), error)
            raise typer.Exit(2 if isinstance(error, ArgumentError) else 1) from error
        except OSError as error:  # of a file that is written; other errors of files have a message of their own
            if error.errno not in FULL or error.filename is None:
                raise
            typer.echo(f"cascada: {message(unwritten(Path(error.filename), error))}", err=True)
            raise typer.Exit(1) from error
        except MemoryError as error:
            typer.echo("cascada: the memory of this machine does not suffice for this; use smaller numbers.", err=True)
            raise typer.Exit(1) from error
        except OverflowError as error:
            text = f"some number is too large to compute with ({error}); use smaller ones."
            typer.echo(f"cascada: {message(text)}", err=True)
            raise typer.Exit(2) from error
        except Exception as error:
            # An error in the user's own file; any other is a mistake of ours, and its traceback is wanted.
            text = f"{type(error).__name__}: {error}"
            if isinstance(error, (_UsageError, *_Exit)) or not _report(text, error, own=True):
                raise
            raise typer.Exit(1) from error

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """Find the command by its name; the error for an unknown one names the near one."""
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            hint = did_you_mean(args[0], COMMANDS) if args else ""
            if hint and hint not in error.message:
                error.message = f"{error.message.rstrip('.')}{hint}."
            raise


def _report(text: str, error: BaseException, *, own: bool = False) -> bool:
    """Print an error in one line, and the lines of the user's own file that led to it.

    With `own`, nothing is printed if there are no such lines. Returns whether it was printed.
    """
    from cascada.cli.own_file import own_lines  # only after an error

    lines = own_lines(error)
    if own and not lines:
        return False
    typer.echo(f"cascada: {message(text)}", err=True)
    for line in lines:
        say(line, err=True)
    return True


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print a warning in one line, without the line of code that it comes from."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda text, *_: f"cascada: {message(str(text))}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


@contextmanager
def _short_usage_errors() -> Iterator[None]:
    """Make the text of an error about a call, which quotes arguments, short and printable."""
    try:
        yield
    except _UsageError as error:
        error.message = message(error.message)
        raise


app = typer.Typer(cls=LazyCommands, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"cascada {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Optimise multi-stage processes whose every stage can be observed, with a proven gap to the best."""
