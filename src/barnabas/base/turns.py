"""Divides the event loop's time: one thread serves all clients, so no client may occupy it for long.

A socket's callback calls `begin` and works until `is_over`; it continues in a later turn with `call_later`. A
coroutine calls `checkpoint` between elements of a large request. As in a fair scheduler, the client that has used the
least time goes first.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from weakref import WeakValueDictionary

#: How long one turn lasts before other clients are served.
TURN_MS_MAX = 5
_TURN_NS_MAX = TURN_MS_MAX * 1_000_000

#: A client that has just begun may use a turn that is over for a little longer: postponing a small request costs as
#: much as handling it, and gains nothing if all requests are small. This is the limit of such an extended turn.
EXTENDED_TURN_MS_MAX = 15
_EXTENDED_TURN_NS_MAX = EXTENDED_TURN_MS_MAX * 1_000_000
_SMALL_WORK_NS_MAX = 100_000


class Share:
    """The time that one client has used of the thread, in nanoseconds; all connections of a principal have one
    share.
    """

    __slots__ = ("__weakref__", "used_ns")

    def __init__(self) -> None:
        self.used_ns = 0


class Turns:
    """Divides the event loop's thread among clients."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._started_ns = 0
        self._slice_started_ns = 0  #: when the current client's slice began
        self._is_open = False
        self._is_serving = False
        self._order = count()  #: equal shares are served in the order of arrival
        self._waiting: list[tuple[int, int, Share, Callable[[], None] | asyncio.Future[None]]] = []
        self._served_ns = 0  #: the share served last; a lower share counts as equal to it
        self._continued_count = 0
        self._shares: WeakValueDictionary[str, Share] = WeakValueDictionary()

    def share_of(self, principal: str) -> Share:
        """Return the share of a principal's connections, which lives as long as one of them holds it."""
        share = self._shares.get(principal)
        if share is None:
            share = self._shares[principal] = Share()
        return share

    def begin(self) -> int:
        """Begin the work of one client; return the time in nanoseconds.

        Clients within one iteration of the loop share a turn.
        """
        now_ns = self._slice_started_ns = self._now_ns()
        if not self._is_open:
            self._open()
        return now_ns

    def _open(self) -> None:
        self._is_open = True
        self._started_ns = self._slice_started_ns = self._now_ns()
        asyncio.get_running_loop().call_soon(self._end)

    def must_yield(self) -> bool:
        """Whether the current client must leave the rest to a later turn. Opens a turn if none is open."""
        if not self._is_open:
            self._open()
            return False
        now_ns = self._now_ns()
        used_ns = now_ns - self._started_ns
        return used_ns >= _TURN_NS_MAX and (
            now_ns - self._slice_started_ns >= _SMALL_WORK_NS_MAX or used_ns >= _EXTENDED_TURN_NS_MAX
        )

    async def checkpoint(self, share: Share) -> None:
        """Serve other clients first if the turn is over."""
        if self.must_yield():
            future = asyncio.get_running_loop().create_future()
            self._wait(share, future)
            await future
            self._open()

    def call_later(self, share: Share, callback: Callable[[], None]) -> None:
        """Call `callback` in a later turn, in the order of the shares."""
        self._wait(share, callback)

    def _wait(self, share: Share, continuation: Callable[[], None] | asyncio.Future[None]) -> None:
        share.used_ns = max(share.used_ns, self._served_ns)
        heappush(self._waiting, (share.used_ns, next(self._order), share, continuation))
        now_ns = self._now_ns()
        share.used_ns += max(now_ns - self._slice_started_ns, 1)
        self._slice_started_ns = now_ns
        self._continued_count += 1
        self._serve_soon()

    def _serve_soon(self) -> None:
        if not self._is_serving:
            self._is_serving = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _end(self) -> None:
        self._is_open = False

    def _serve(self) -> None:
        """Continue waiting clients until the turn is over; a coroutine has its own turn."""
        self._is_serving = False
        self._open()
        try:
            while self._waiting and self._now_ns() - self._started_ns < _TURN_NS_MAX:
                used_ns, _, _, continuation = heappop(self._waiting)
                self._served_ns = max(self._served_ns, used_ns)
                if not isinstance(continuation, asyncio.Future):
                    self._slice_started_ns = self._now_ns()
                    continuation()
                elif not continuation.done():
                    continuation.set_result(None)
                    break
        finally:
            if self._waiting:
                self._serve_soon()

    def statistics(self) -> dict[str, int]:
        return {"waiting_count": len(self._waiting), "continued_count": self._continued_count}
