"""What became of several things that were asked for together."""

from collections.abc import Iterable

from barnabas.cli.failures import CommandError
from barnabas.wire.errors import KafkaError


def raise_all(outcomes: Iterable[object]) -> None:
    """Raise the errors among `outcomes`, when all that succeeded is printed.

    :raises KafkaError: When there is one.
    :raises CommandError: Likewise.
    :raises ExceptionGroup: When there are several.
    """
    errors = [outcome for outcome in outcomes if isinstance(outcome, KafkaError | CommandError)]
    if len(errors) > 1:
        message = f"{len(errors)} were refused"
        raise ExceptionGroup(message, errors)
    for error in errors:
        raise error
