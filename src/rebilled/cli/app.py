"""The typer application, with only the commands that are needed."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from rebilled.cli import COMMANDS, GROUPS
from rebilled.cli.value import QuickCommand, QuickGroup

_EXAMPLES = """\b
Examples:
  analyze trace.jsonl                     the report; a folder or *.jsonl works too
  analyze diff 12 --trace trace.jsonl     what moved between step 12 and the step it continues
  analyze steps trace.jsonl               every step on a line
  analyze causes tools_reordered          what a verdict means, and what to do
"""


def build(word: str) -> typer.Typer:
    """The application with one command, or with all of them where the first word is no command."""
    app = typer.Typer(
        cls=QuickGroup,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=_EXAMPLES, subcommand_metavar="COMMAND | PATH...", options_metavar="")(about)
    for name in (word,) if word in COMMANDS else COMMANDS:
        module = importlib.import_module(f"rebilled.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.group(), name=name)
            continue
        epilog = getattr(module, "EXAMPLES", None)
        app.command(name, cls=QuickCommand, epilog=epilog)(getattr(module, name))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        from rebilled import __version__

        typer.echo(f"rebilled {__version__}")
        raise typer.Exit


def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the byte that broke your LLM prompt cache, what moved it, and what it cost.

    `analyze PATH...` reads logged requests and reports what was billed again although it had been cached before.
    """
    del version


def describe_usage(error: typer.TyperException) -> str:
    """A usage error in one line: what is wrong, at which command, and where help is."""
    context = getattr(error, "ctx", None)
    format_message = getattr(error, "format_message", None)
    message = str(format_message() if format_message is not None else error).strip().rstrip(".")
    command = context.command_path if context is not None else "analyze"
    return f"{command}: {message[:1].lower()}{message[1:]}; `{command} --help` shows how it is used"
