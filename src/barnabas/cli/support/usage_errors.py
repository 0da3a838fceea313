"""Errors of the command line parser, printed like other errors."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from barnabas.cli.support.failures import FAILED, report, wrong_use

#: Base class of parser errors. Newer versions of Typer contain their own copy of click, so click is not imported.
ParserError: type[Exception] = typer.BadParameter.__mro__[2]
_HELP = "NoArgsIsHelpError"
#: The valid values, by the type of a Pydantic error, which Typer passes on; `{}` stands for a limit from its context.
_EXPECTED: Mapping[str, tuple[str, str]] = {
    "int_parsing": ("a whole number", ""),
    "int_from_float": ("a whole number", ""),
    "float_parsing": ("a number", ""),
    "bool_parsing": ("true or false", ""),
    "greater_than_equal": ("at least {}", "ge"),
    "greater_than": ("greater than {}", "gt"),
    "less_than_equal": ("at most {}", "le"),
    "less_than": ("less than {}", "lt"),
}


def report_parser_error(error: Any, arguments: Sequence[str]) -> int:
    """Print the error, as JSON if `arguments` have --json, and return the exit code."""
    if type(error).__name__ == _HELP:
        print(error.format_message())
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f"{context.command_path} --help"
    return report(wrong_use(parser_message(error), hint), as_json=wants_json(arguments))


def report_abort(arguments: Sequence[str]) -> int:
    """Print that the user declined a confirmation, and return the exit code."""
    if not wants_json(arguments):
        print("Aborted.", file=sys.stderr)
    return FAILED


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether --json is among the options; arguments after `--` are not options."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def parser_message(error: Any) -> str:
    """Return a message with the invalid value and what is valid."""
    cause: Any = error.__cause__
    details: Any = cause.errors()[0] if hasattr(cause, "errors") else {}
    expected, limit = _EXPECTED.get(details.get("type", ""), ("", ""))
    message = str(error.format_message()).replace("Value error, ", "").rstrip(".")
    if not expected:
        return message
    must_be = expected.format(details.get("ctx", {}).get(limit))
    return f"{message.partition(': ')[0]}: '{details['input']}' must be {must_be}"
