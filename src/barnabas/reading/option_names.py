"""Finds misspelled names of options."""

from collections.abc import Iterable

from barnabas.client.property_names import is_client_property, nearest_property
from barnabas.reading.option_values import OptionError

_PROPERTY = "kafka."
#: How similar a misspelled name is to the right one, as a ratio of `difflib`.
_CUTOFF = 0.9


def check_option_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first name that is almost the name of a known option: the option would have no effect.

    Other unknown names are allowed: Spark passes options of its own, such as `path`.

    :param given: Names in lower case; options are case-insensitive.
    :raises OptionError: With the name, but without the value, which may be a secret.
    """
    by_lower_case = {name.lower(): name for name in known}
    for name in given:
        right = _right_property(name) if name.startswith(_PROPERTY) else _right_option(name, by_lower_case)
        if right is not None:
            message = f"unknown option '{name}': did you mean {right}?"
            raise OptionError(message)


def _right_option(name: str, by_lower_case: dict[str, str]) -> str | None:
    import difflib

    if name in by_lower_case:
        return None
    near = difflib.get_close_matches(name, by_lower_case, n=1, cutoff=_CUTOFF)
    return by_lower_case[near[0]] if near else None


def _right_property(name: str) -> str | None:
    name = name.removeprefix(_PROPERTY)
    near = None if is_client_property(name) else nearest_property(name, cutoff=_CUTOFF)
    return _PROPERTY + near if near else None
