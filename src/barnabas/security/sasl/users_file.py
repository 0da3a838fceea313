"""Users of PLAIN in a file: NAME=PASSWORD lines in the format of Java's properties, read again when the file
changes.
"""

from pathlib import Path

from barnabas.config.properties import parse_properties
from barnabas.telemetry.logs import get_logger

_log = get_logger("barnabas.security")


class UsersFile:
    """The passwords in a file. While it cannot be read, the last ones stay valid."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        :raises OSError: When it cannot be read.
        :raises ValueError: When it is malformed.
        """
        self._path = path
        self._stamp = self._stamp_now()
        self._passwords = self._read()
        self._failure: tuple[object, str] | None = None  #: the last one, which is logged once

    def password_of(self, user: str) -> str | None:
        """Return a user's password; None for an unknown user."""
        stamp = None
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._passwords, self._stamp = self._read(), stamp
            self._failure = None
        except (OSError, ValueError) as error:
            self._failed((stamp, type(error).__name__))
        return self._passwords.get(user)

    def _failed(self, failure: tuple[object, str]) -> None:
        """Log a failure, which the next client that logs in would have, too."""
        if failure != self._failure:
            _log.warning("the users file cannot be read", path=str(self._path), why=failure[1])
        self._failure = failure

    def _stamp_now(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> dict[str, str]:
        return parse_properties(self._path.read_text(encoding="utf-8"))
