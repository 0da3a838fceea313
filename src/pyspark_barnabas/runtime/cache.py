"""Small directories and files made once for a user and kept: safe when many processes want the same at once."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

VARIABLE = "XDG_CACHE_HOME"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Where this package keeps what it can make again; it may not exist yet."""
    given = environment.get(VARIABLE)
    return (Path(given) if given else Path(environment.get("HOME") or Path.home()) / ".cache") / "barnabas"


def made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """The file or directory at `place`, by `make` if it is not there: it appears whole or not at all.

    `make` is given a path in the same directory to make it at. Of several processes one wins; the others take its.

    :raises OSError: It cannot be written, and says where it could be.
    """
    if place.exists():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=place.parent) as scratch:
            made = Path(scratch) / place.name
            make(made)
            _move(made, place)
    except OSError as error:
        message = f"cannot write {place}: {error.strerror or error}; {VARIABLE} can name another directory"
        raise OSError(error.errno, message) from error
    return place


def _move(made: Path, place: Path) -> None:
    try:
        os.rename(made, place)
    except OSError:
        if not place.exists():
            raise
