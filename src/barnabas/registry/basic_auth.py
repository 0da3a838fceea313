"""HTTP basic authentication (RFC 7617) against a file of users."""

import base64
import binascii
import hmac
from pathlib import Path


class BasicAuth:
    """Users and passwords of a file, one NAME=PASSWORD in each line."""

    def __init__(self, path: str) -> None:
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
            self._passwords[name.strip()] = password.encode()

    def admits(self, header: str) -> bool:
        """Whether an Authorization header has the name and password of a user."""
        scheme, _, encoded = header.partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            name, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        known = self._passwords.get(name)
        return hmac.compare_digest(password.encode(), known or b"\0") and known is not None
