"""The newest audit events for pages that refresh: each time only new records are read."""

from collections import OrderedDict
from collections.abc import Hashable

from barnabas.client.core.cluster import ClusterClient
from barnabas.console.audit_reader import (
    COUNT,
    LOOK_MAX,
    NO_AUDIT,
    AuditPage,
    AuditQuery,
    Look,
    bounds_of,
    look_back,
)

#: Filters cached per person; the least recently used one is dropped.
FOLLOWED_MAX = 4


class AuditFollower:
    """The events last shown to one principal, by filter. A query with an end time is not cached."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._looks: OrderedDict[Hashable, Look] = OrderedDict()

    async def latest(self, filtered: Hashable, query: AuditQuery) -> AuditPage:
        """The newest events that match.

        :param filtered: The filter as it was typed: with "since 1h" in it, the query's times move.
        :raises KafkaError: TOPIC_AUTHORIZATION_FAILED.
        """
        bounds = await bounds_of(self._cluster, query)
        if bounds is None:
            self._looks.clear()
            return NO_AUDIT
        look = await self._look(query, self._looks.get(filtered), *bounds)
        if query.until_ms is None:
            self._looks[filtered] = look
            self._looks.move_to_end(filtered)
            if len(self._looks) > FOLLOWED_MAX:
                self._looks.popitem(last=False)
        return look.found

    async def _look(self, query: AuditQuery, before: Look | None, first: int, last: int) -> Look:
        if before is None or not first <= before.end <= last or last - before.end > LOOK_MAX:
            return await look_back(self._cluster, query, first, last)
        if last == before.end:
            fresh = Look([], None, last)
        else:
            fresh = await look_back(self._cluster, query, before.end, last)
        return joined(fresh, before, query, first)


def joined(fresh: Look, before: Look, query: AuditQuery, first: int) -> Look:
    """New events joined with earlier ones that still match, as many as a page shows."""
    if fresh.older is not None:  # a full page by itself
        return fresh
    kept = [(offset, event) for offset, event in before.events if offset >= first and query.matches(event)]
    events = fresh.events + kept
    if len(events) > COUNT:
        return Look(events[:COUNT], events[COUNT][0] + 1, fresh.end)
    older = None if before.older is None or before.older <= first else before.older
    return Look(events, older, fresh.end)
