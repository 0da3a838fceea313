"""Per-user cache of small files and directories, safe for concurrent processes."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

VARIABLE = "XDG_CACHE_HOME"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the cache directory of this package; it may not exist yet."""
    configured = environment.get(VARIABLE)
    return (
        Path(configured) if configured else Path(environment.get("HOME") or Path.home()) / ".cache"
    ) / "barnabas"


def create_once(path: Path, make: Callable[[Path], None]) -> Path:
    """Return the file or directory at `path`; create it with `make` if it does not exist, atomically.

    `make` receives a temporary path in the same directory. Of several processes one wins; the others use its result.

    :raises OSError: It cannot be written; the message names the variable for another directory.
    """
    if path.exists():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=path.parent) as scratch:
            created = Path(scratch) / path.name
            make(created)
            _move(created, path)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}; set {VARIABLE} to use another directory"
        raise OSError(error.errno, message) from error
    return path


def _move(created: Path, path: Path) -> None:
    try:
        os.rename(created, path)
    except OSError:
        if not path.exists():
            raise
