"""The interface of mechanisms, and their two errors."""

from typing import Protocol


class LoginRefused(Exception):
    """An error whose message is sent to the client (`SaslAuthenticationException`)."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        """:param reason: What to log instead of the message."""
        super().__init__(message)
        self.reason = reason or message


class BadCredentials(Exception):
    """An error whose message is only logged, because it would reveal which credential is wrong."""


class ServerMechanism(Protocol):
    """One exchange of tokens with one client."""

    @property
    def user(self) -> str | None:
        """The authenticated user; None until the exchange is complete."""
        ...

    @property
    def claimed_user(self) -> str | None:
        """The user that the client claims to be, for the log; None until it is known."""
        ...

    @property
    def lifetime_ms(self) -> int | None:
        """How long the credential of the authenticated user is valid; None if it has no end."""
        ...

    @property
    def is_delegation_token(self) -> bool:
        """Whether the credential is a delegation token, which acts for its owner."""
        ...

    def evaluate(self, token: bytes) -> bytes:
        """Evaluate the client's next token; return the response token, which may be empty.

        :raises LoginRefused: With a reason for the client.
        :raises BadCredentials: With a reason for the log only.
        """
        ...
