"""Progress of streaming queries: how far they are behind, and as offsets of a consumer group, for tools that monitor
groups.

The query itself uses only its checkpoint: it does not read these offsets, and no consumer joins the group.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.retry import Retry
from barnabas.reading.option_values import OptionError, flat
from barnabas.reading.options import Assign, Subscribe, TopicSelection
from barnabas.reading.topic_patterns import topic_matcher
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.source.options import stream_options
from pyspark_barnabas.stream_offsets import positions_only

_LOG = logging.getLogger(__name__)
#: A slow listener delays all other listeners.
_TIMEOUT_MS = 5_000


class GroupProgress(StreamingQueryListener):
    """Commits the end offsets of each finished micro-batch for the group in `kafka.group.id`.

    spark.streams.addListener(GroupProgress(options, query_name="orders"))
    """

    def __init__(self, options: Mapping[str, str], *, query_name: str | None = None) -> None:
        """:param options: Options of the source.
        :param query_name: Without it, every query that reads the source's topics is tracked.
        :raises OptionError: An option is not valid, or `kafka.group.id` is missing.
        """
        parsed = stream_options(options)
        if not parsed.group_id:
            message = "option 'kafka.group.id' is missing: it names the group for which offsets are committed"
            raise OptionError(message)
        self._group_id = parsed.group_id
        self._connection = parsed.connection
        self._selection = parsed.selection
        self._query_name = query_name
        self._client: BlockingClient | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: no records have been read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: no new records have been read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: the offsets have been committed."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Commit the offsets; errors are only logged, because the query does not depend on them."""
        progress = event.progress
        if self._query_name is not None and progress.name != self._query_name:
            return
        offsets: dict[TopicPartition, int] = {}
        for source in progress.sources:
            offsets |= selected_offsets(source.endOffset, self._selection)
        if not offsets:
            return
        try:
            self._commit(offsets)
        except (KafkaError, OSError) as error:
            _LOG.warning("cannot commit the progress of group '%s': %s", self._group_id, error)

    def close(self) -> None:
        """Close the connection to the cluster."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._client is None:
            connection = self._connection
            self._client = BlockingClient(
                connection.bootstrap,
                client_id=connection.client_id,
                request_timeout_ms=connection.request_timeout_ms,
                retry=Retry(timeout_ms=_TIMEOUT_MS),
                login=connection.login,
                tls=connection.tls,
            )
        for error in self._client.groups.commit_offsets(self._group_id, offsets).values():
            if error is not None:
                raise error


def offsets_behind_latest(source: SourceProgress) -> dict[str, str]:
    """Return the metrics that Spark's Kafka connector has in `sources[n].metrics`; empty for another kind of source.

    Spark does not let a data source in Python report metrics of its own.
    """
    read, latest = _positions(source.endOffset), _positions(source.latestOffset)
    behind = [max(0, offset - read.get(tp, 0)) for tp, offset in latest.items()]
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }


def selected_offsets(text: str | None, selection: TopicSelection) -> dict[TopicPartition, int]:
    """Return the offsets of the selected partitions in a source's JSON, if it has any."""
    return {tp: offset for tp, offset in _positions(text).items() if _is_selected(tp, selection)}


def _positions(text: str | None) -> dict[TopicPartition, int]:
    try:
        offsets = flat(positions_only(json.loads(text or "{}")))
    except (ValueError, AttributeError, TypeError):
        return {}  # another kind of source
    return {tp: offset for tp, offset in offsets.items() if _is_offset(offset)}


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_selected(tp: TopicPartition, selection: TopicSelection) -> bool:
    match selection:
        case Subscribe(topics):
            return tp.topic in topics
        case Assign(partitions):
            return tp in partitions
    return topic_matcher(selection.pattern)(tp.topic)
