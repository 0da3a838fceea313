"""Overwrites secrets in this process's arguments, so that process listings do not show them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_ARGUMENTS_START, _ARGUMENTS_END = 47, 48  #: indexes among the fields of /proc/self/stat


def conceal(secrets: Iterable[str]) -> None:
    """Overwrite `secrets` in this process's arguments as process listings show them, where the system allows it."""
    unique_secrets = list(secrets)
    if not unique_secrets:
        return
    import ctypes  # takes 2 ms, which few starts need

    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        # The two fields before the last ")" come first.
        start, end = int(fields[_ARGUMENTS_START - 2]), int(fields[_ARGUMENTS_END - 2])
    except (OSError, ValueError, IndexError):
        return  # not Linux: the arguments cannot be found
    if not 0 < start < end:
        return
    for position, size_bytes in secret_positions(ctypes.string_at(start, end - start), unique_secrets):
        ctypes.memset(start + position, ord("*"), size_bytes)


def secret_positions(arguments: bytes, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield every position of each secret in the arguments, as (offset, size in bytes).

    A secret follows `=` or a blank, or is a whole argument. A user name may equal a password, and one password
    may be the beginning of another.
    """
    for secret in filter(None, (each.encode() for each in secrets)):
        escaped = re.escape(secret)
        for match in re.finditer(rb"(?<=[=\s])%b|(?<=\0)%b(?=\0)" % (escaped, escaped), arguments):
            yield match.start(), len(secret)
