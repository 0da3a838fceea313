"""The interface of mechanisms, and their two errors."""

from typing import Protocol


class LoginRefused(Exception):
    """An error whose message is sent to the client (`SaslAuthenticationException`)."""


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

    def evaluate(self, token: bytes) -> bytes:
        """Evaluate the client's next token; return the response token, which may be empty.

        :raises LoginRefused: With a reason for the client.
        :raises BadCredentials: With a reason for the log only.
        """
        ...
