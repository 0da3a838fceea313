"""HTTP basic authentication (RFC 7617) against a file of users."""

import base64
import binascii
import hmac
from pathlib import Path

from barnabas.base.clock import Clock, SystemClock
from barnabas.telemetry.logs import get_logger

_log = get_logger("barnabas.registry")

#: At most one failed login is logged in this time.
_LOG_INTERVAL_MS = 1_000
_SHOWN_NAME_CHARACTERS = 200


class BasicAuth:
    """Users and passwords of a file, one NAME=PASSWORD in each line."""

    def __init__(self, path: str, clock: Clock | None = None) -> None:
        """:raises ValueError: If the file cannot be read, or a line has no password."""
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            message = f"{path}: {error}"
            raise ValueError(message) from None
        self._passwords: dict[str, bytes] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, separator, password = line.partition("=")
            if not separator or not name.strip():
                message = f"{path}, line {number}: must be NAME=PASSWORD"
                raise ValueError(message)
            if not password:
                message = (
                    f"{path}, line {number}: {name.strip()} has an empty password; must be NAME=PASSWORD"
                )
                raise ValueError(message)
            self._passwords[name.strip()] = password.encode()
        self._clock = clock or SystemClock()
        self._logged_ms: int | None = None
        self._left_out_count = 0  #: failed logins since then

    def admits(self, header: str, address: str) -> bool:
        """Whether an Authorization header has the name and password of a user; logs it if not.

        :param address: The client's.
        """
        scheme, _, encoded = header.partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            name, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        known = self._passwords.get(name)
        is_equal = hmac.compare_digest(password.encode(), b"" if known is None else known)
        if not is_equal or known is None:
            self._log_failure(name, address)
            return False
        return True

    def _log_failure(self, name: str, address: str) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._logged_ms is not None and now_ms - self._logged_ms < _LOG_INTERVAL_MS:
            self._left_out_count += 1
            return
        left_out = {"failed_before": self._left_out_count} if self._left_out_count else {}
        _log.info("login failed", user=name[:_SHOWN_NAME_CHARACTERS], address=address, **left_out)
        self._logged_ms, self._left_out_count = now_ms, 0
