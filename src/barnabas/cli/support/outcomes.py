"""Errors among the results of a batch of requests."""

from collections.abc import Iterable

from barnabas.cli.support.failures import CommandError
from barnabas.wire.errors import KafkaError


def raise_all(results: Iterable[object]) -> None:
    """Raise the errors among the results; call it after the successful ones are printed.

    :raises KafkaError: If there is one error.
    :raises CommandError: If there is one error.
    :raises ExceptionGroup: If there are several errors.
    """
    errors = [result for result in results if isinstance(result, KafkaError | CommandError)]
    if len(errors) > 1:
        message = f"{len(errors)} errors"
        raise ExceptionGroup(message, errors)
    for error in errors:
        raise error


def error_json(error: KafkaError | None) -> dict[str, str | None]:
    """Return what the JSON of a resource says about its error; None stands for success."""
    return {"error": None} if error is None else {"error": error.code.name, "message": error.message}
