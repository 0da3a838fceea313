"""What all mechanisms have in common, and the two ways in which one fails."""

from typing import Protocol


class LoginRefused(Exception):
    """A login that fails for a reason which the client may be told (`SaslAuthenticationException`)."""


class BadCredentials(Exception):
    """A login that fails for a reason which is for the log alone: it could tell what was wrong."""


class ServerMechanism(Protocol):
    """One exchange of tokens with one client."""

    @property
    def user(self) -> str | None:
        """Who has logged in; None until the exchange is complete."""
        ...

    @property
    def claimed_user(self) -> str | None:
        """Who the client says that it is; None until it has said so. For the log alone."""
        ...

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's next token; gives the one to answer with, which may be empty.

        :raises LoginRefused: The client may be told why.
        :raises BadCredentials: It may not.
        """
        ...
