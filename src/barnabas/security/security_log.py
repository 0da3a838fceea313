"""Logs authentications and denied requests at INFO, limited to as many lines as an operator can read."""

from collections.abc import Callable, Mapping

from barnabas.base.clock import Clock
from barnabas.base.source_limiter import OTHER_PRINCIPALS, SourceLimiter, SourceLimits
from barnabas.security.sasl.authenticator import LoginEvent
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import AclOperation, ResourceType

_log = get_logger("barnabas.security")

#: Lines per minute; the next minute begins with a summary of the suppressed lines.
LIMITS = SourceLimits(principal=10, address=100, total=1_000)
#: Longest printed part of a name that a client chose.
NAME_CHARACTERS_MAX = 200


class SecurityLog:
    """Writes a line for each authentication and each denial, limited by principal and address."""

    def __init__(self, clock: Clock) -> None:
        #: Called with the event and the fields of each line.
        self.on_line: Callable[[str, Mapping[str, object]], None] = _ignore
        self._limiter = SourceLimiter(clock, LIMITS)

    def login(self, event: LoginEvent) -> None:
        """Log the outcome of an authentication."""
        if self._admits(event.user, event.address):
            self._write(
                f"login {event.outcome}",
                user=_short(event.user),
                mechanism=_short(event.mechanism),
                address=event.address,
                listener=event.listener,
                **({"why": _short(event.reason)} if event.reason else {}),
            )

    def denied(
        self,
        principal: str,
        address: str,
        operation: AclOperation,
        resource_type: ResourceType,
        resource: str,
        api: str,
    ) -> None:
        """Log that a principal lacks a permission that its request needs."""
        if self._admits(principal, address):
            self._write(
                "authorization denied",
                principal=_short(principal),
                address=address,
                operation=operation.name,
                resource_type=resource_type.name,
                resource=_short(resource),
                api=api,
            )

    def _write(self, event: str, **fields: object) -> None:
        _log.info(event, **fields)
        self.on_line(event, fields)

    async def flush(self) -> None:
        """Log the summary if the window is over; to be called regularly."""
        self._log_left_out()

    def _log_left_out(self) -> None:
        for left_out in self._limiter.end_window():
            self._write(
                "suppressed log lines of logins and denials",
                count=left_out.entries_count,
                principal=left_out.principal,
                **({"address": left_out.address} if left_out.principal != OTHER_PRINCIPALS else {}),
            )

    def _admits(self, principal: str, address: str) -> bool:
        """Whether a line may be written; counts it in any case."""
        self._log_left_out()
        return self._limiter.admits(_short(principal), address)

    def statistics(self) -> dict[str, int]:
        return self._limiter.statistics()


def _ignore(event: str, fields: Mapping[str, object]) -> None:
    """Do nothing: the log is enough."""


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS_MAX else f"{name[:NAME_CHARACTERS_MAX]}..."
