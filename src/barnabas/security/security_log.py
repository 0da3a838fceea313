"""Logs authentications and denied requests at INFO, limited to as many lines as an operator can read."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.security.sasl.authenticator import LoginEvent
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import AclOperation, ResourceType

_log = get_logger("barnabas.security")

#: The length of a window; at its end the suppressed lines are summarised.
WINDOW_MS = 60_000
#: Lines per window: of one principal at one address, of one address, in all.
PRINCIPAL_LINES_MAX, ADDRESS_LINES_MAX, LINES_MAX = 10, 100, 1_000
#: Principals and addresses counted per window; all others are counted together.
SOURCES_MAX = 2_000
#: Summary lines per window; the last one is for all others.
SUMMARY_LINES_MAX = 20
#: Longest printed part of a name that a client chose.
NAME_CHARACTERS_MAX = 200


class _Source(NamedTuple):
    """The source of a line. An empty principal means an address, an empty address all others."""

    principal: str
    address: str


_OTHERS = _Source("", "")


class SecurityLog:
    """Writes a line for each authentication and each denial, limited by principal and address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: Called with the event and the fields of each line.
        self.on_line: Callable[[str, Mapping[str, object]], None] = _ignore
        self._window_began_ms = clock.monotonic_ms()
        self._written_count = 0
        self._counts: Counter[_Source] = Counter()
        self._left_out: Counter[_Source] = Counter()

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
        if self._clock.monotonic_ms() - self._window_began_ms >= WINDOW_MS:
            self._begin_window()

    def _admits(self, principal: str, address: str) -> bool:
        """Whether a line may be written; counts it in any case."""
        if self._clock.monotonic_ms() - self._window_began_ms >= WINDOW_MS:
            self._begin_window()
        principal = _short(principal)
        own, at_address = self._counted(_Source(principal, address)), self._counted(_Source("", address))
        if (
            self._counts[own] >= PRINCIPAL_LINES_MAX
            or self._counts[at_address] >= ADDRESS_LINES_MAX
            or self._written_count >= LINES_MAX
        ):
            self._left_out[own] += 1
            return False
        self._counts[own] += 1
        if at_address is not own:
            self._counts[at_address] += 1
        self._written_count += 1
        return True

    def _counted(self, source: _Source) -> _Source:
        """Return the source that a line counts for; once there are too many, new ones share one."""
        if source in self._counts or len(self._counts) < SOURCES_MAX:
            return source
        return _OTHERS

    def _begin_window(self) -> None:
        left_out = self._left_out
        self._window_began_ms = self._clock.monotonic_ms()
        self._written_count = 0
        self._counts, self._left_out = Counter(), Counter()
        commonest = [pair for pair in left_out.most_common(SUMMARY_LINES_MAX) if pair[0] != _OTHERS]
        for source, count in commonest:
            self._write(
                "suppressed log lines of logins and denials",
                count=count,
                principal=source.principal,
                address=source.address,
            )
        others_count = left_out.total() - sum(count for _, count in commonest)
        if others_count:
            self._write(
                "suppressed log lines of logins and denials", count=others_count, principal="(others)"
            )

    def statistics(self) -> dict[str, int]:
        return {
            "written": self._written_count,
            "left_out": self._left_out.total(),
            "sources": len(self._counts),
        }


def _ignore(event: str, fields: Mapping[str, object]) -> None:
    """Do nothing: the log is enough."""


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS_MAX else f"{name[:NAME_CHARACTERS_MAX]}..."
