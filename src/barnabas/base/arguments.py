"""Secrets among this process's arguments: they are written over, so that process listings do not show them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_ARGUMENTS_START, _ARGUMENTS_END = 47, 48  #: of the fields of /proc/self/stat, from 0


def conceal(secrets: Iterable[str]) -> None:
    """Write over `secrets` where process listings show this process's arguments, as far as the system lets us."""
    wanted = list(secrets)
    if not wanted:
        return
    import ctypes  # 2 ms that few starts need

    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        # What stands before the last ")" are two fields.
        start, end = int(fields[_ARGUMENTS_START - 2]), int(fields[_ARGUMENTS_END - 2])
    except (OSError, ValueError, IndexError):
        return  # not Linux: arguments cannot be found
    if not 0 < start < end:
        return
    for position, size_bytes in secret_positions(ctypes.string_at(start, end - start), wanted):
        ctypes.memset(start + position, ord("*"), size_bytes)


def secret_positions(arguments: bytes, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where in the arguments each secret stands: (position, size in bytes), for every time.

    It stands behind `=` or a blank, or is a whole argument. A user may be called like the password, and one password
    may begin like another.
    """
    for secret in filter(None, (each.encode() for each in secrets)):
        escaped = re.escape(secret)
        for found in re.finditer(rb"(?<=[=\s])%b|(?<=\0)%b(?=\0)" % (escaped, escaped), arguments):
            yield found.start(), len(secret)
