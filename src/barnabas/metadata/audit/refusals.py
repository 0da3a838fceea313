"""Which refused changes are recorded: a client without permissions must not fill the store or the audit topic."""

import json
from collections.abc import Iterator, Sequence

from barnabas.base.clock import Clock
from barnabas.base.source_limiter import LeftOut, SourceLimiter, SourceLimits
from barnabas.metadata.audit.records import Actor, Refusal

#: Refused changes of one request that are recorded; one more event has the number of the others.
REQUEST_COUNT_MAX = 50

#: Refused changes that a broker records in a minute; another event has the number of the others.
LIMITS = SourceLimits(principal=60, address=120, total=300)

#: The size of a text in JSON. The longest name of a topic has 249 characters.
TEXT_BYTES_MAX = 300

#: The same refused change of the same client is recorded once in this time, so that repeated requests do not fill the
#: audit log.
REPEATED_MS = 60_000
#: Refused changes that are remembered for this purpose; when there are more, all are dropped.
REMEMBERED_COUNT_MAX = 10_000

#: The resource of events that say how many refused changes were left out.
LEFT_OUT = "audit/left-out"
#: The API in such an event if it is about several requests.
SEVERAL_APIS = "(several)"


class RefusalLimiter:
    """Selects the refused changes to record, by request, principal and address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limiter = SourceLimiter(clock, LIMITS)
        self._left_out: list[LeftOut] = []  #: by earlier windows, and not taken yet
        self._recorded_ms: dict[tuple[Actor, Refusal], int] = {}

    def admitted(self, actor: Actor, refusals: Sequence[Refusal]) -> list[Refusal]:
        """Return the refusals of a request that are to be recorded, with shortened texts."""
        self._end_window()
        return [refusal for refusal in _of_request(refusals) if self._admits(shortened_actor(actor), refusal)]

    def take_left_out(self) -> list[LeftOut]:
        """Return how many refusals earlier minutes left out, each number once."""
        self._end_window()
        left_out, self._left_out = self._left_out, []
        return left_out

    def _end_window(self) -> None:
        self._left_out += self._limiter.end_window()

    def _admits(self, actor: Actor, refusal: Refusal) -> bool:
        """Whether a refusal is the first one in `REPEATED_MS`, and within the limits."""
        now_ms, key = self._clock.monotonic_ms(), (actor, refusal)
        recorded_ms = self._recorded_ms.get(key)
        if recorded_ms is not None and now_ms - recorded_ms < REPEATED_MS:
            return False
        if not self._limiter.admits(actor.principal, actor.client_host):
            return False
        if len(self._recorded_ms) >= REMEMBERED_COUNT_MAX:
            self._recorded_ms.clear()
        self._recorded_ms[key] = now_ms
        return True


def _of_request(refusals: Sequence[Refusal]) -> Iterator[Refusal]:
    """Yield the first refusals of a request, with shortened texts, and the number of the others."""
    for resource, error, message in refusals[:REQUEST_COUNT_MAX]:
        yield Refusal(shortened_text(resource), error, shortened_text(message))
    others_count = len(refusals) - REQUEST_COUNT_MAX
    if others_count > 0:
        yield Refusal(LEFT_OUT, "", f"{others_count} more changes in the request were refused")


def of_left_out(left_out: LeftOut) -> tuple[Actor, Refusal]:
    """Return the actor and the refusal with which it is recorded how many others were left out."""
    actor = Actor(left_out.principal, None, left_out.address, SEVERAL_APIS)
    message = (
        f"{left_out.entries_count} more refused changes within a minute: the limit of events was reached"
    )
    return actor, Refusal(LEFT_OUT, "", message)


def shortened_actor(actor: Actor) -> Actor:
    """Return a copy whose names, which a client may choose, are of limited size."""
    client_id = None if actor.client_id is None else shortened_text(actor.client_id)
    return Actor(shortened_text(actor.principal), client_id, actor.client_host, actor.api)


def shortened_text(text: str) -> str:
    """Cut a text that is longer than `TEXT_BYTES_MAX` in JSON, and append its length."""
    if len(text) <= TEXT_BYTES_MAX and len(json.dumps(text)) <= TEXT_BYTES_MAX:
        return text
    kept = text[:TEXT_BYTES_MAX]
    while len(json.dumps(kept)) > TEXT_BYTES_MAX:
        kept = kept[: len(kept) * 3 // 4]
    return f"{kept}... ({len(text)} characters)"
