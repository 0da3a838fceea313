"""Exit codes of commands that compare."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer

from barnabas.cli.support.failures import FAILED, WRONG_USE

#: Exit code for differences from the declared state, as of `terraform plan -detailed-exitcode`.
DIFFERENT = 2

Arguments = ParamSpec("Arguments")


class DifferenceFound(typer.Exit):
    """Raised by a command that has found differences; sets exit code 2."""

    def __init__(self) -> None:
        super().__init__(DIFFERENT)


def with_diff_exit_code(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Free exit code 2 of a command for differences: invalid arguments exit with 1 instead of 2."""

    @functools.wraps(command)
    def compare(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except DifferenceFound:
            raise
        except typer.Exit as error:
            raise typer.Exit(FAILED if error.exit_code == WRONG_USE else error.exit_code) from None

    return compare
