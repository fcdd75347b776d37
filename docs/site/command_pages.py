"""The command line as Markdown, from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from cascada.cli.main import COMMANDS, app


def as_markdown() -> str:
    """A table of all commands, and a section for each."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="cascada")
    found = {name: group.get_command(context, name) for name in COMMANDS}  # type: ignore[attr-defined]
    lines = ["| command | |", "|---|---|"]
    lines += [f"| [`{name}`](#cascada-{name}) | {_cell(_paragraphs(one)[0])} |" for name, one in found.items()]
    for name, one in found.items():
        lines += ["", f"## cascada {name}", "", *_section(one, typer.Context(one, context, info_name=name))]
    return "\n".join(lines)


def _section(command: Any, context: typer.Context) -> Iterator[str]:
    yield from ("```text", context.get_usage().removeprefix("Usage: "), "```", "")
    for paragraph in _paragraphs(command):
        before, example, line = paragraph.partition("For example: ")
        if example and not before:
            yield from ("```sh", line, "```", "")
        else:
            yield from (_text(paragraph), "")
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None and "--help" not in record[0]:
            yield from (f"`{record[0].strip()}`", f": {_text(record[1])}", "")


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(part.split()) for part in (command.help or "").split("\n\n")]


def _text(words: str) -> str:
    """Help is plain text: what means something in Markdown is escaped, but `code` stays."""
    parts = words.split("`")
    for i in range(0, len(parts), 2):
        for sign in "\\*_[]<>{}#":
            parts[i] = parts[i].replace(sign, f"\\{sign}")
    return " ".join("`".join(parts).split())


def _cell(words: str) -> str:
    return _text(words).replace("|", r"\|")
