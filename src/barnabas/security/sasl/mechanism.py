"""The interface of mechanisms, and the two ways in which one fails."""

from typing import Protocol


class LoginRefused(Exception):
    """A failure whose reason the client may be told (`SaslAuthenticationException`)."""


class BadCredentials(Exception):
    """A failure whose reason is only logged, because it would reveal what was wrong."""


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
        """Take the client's next token; return the response token, which may be empty.

        :raises LoginRefused: With a reason for the client.
        :raises BadCredentials: With a reason for the log only.
        """
        ...
