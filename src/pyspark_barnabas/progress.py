"""A streaming query's progress as offsets of a consumer group, for tools that watch groups.

The query itself goes by its checkpoint alone: nobody reads what is committed here, and no consumer joins the group.
"""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.option_values import OptionError, flat
from pyspark_barnabas.source.options import Assign, Selection, Subscribe, stream_options
from pyspark_barnabas.stream_offsets import without_ids

_LOG = logging.getLogger(__name__)
#: A listener that waits for long holds up all others.
_TIMEOUT_MS = 5_000


class GroupProgress(StreamingQueryListener):
    """Commits where each finished micro-batch ended, as offsets of the group in `kafka.group.id`.

    spark.streams.addListener(GroupProgress(options, query_name="orders"))
    """

    def __init__(self, options: Mapping[str, str], *, query_name: str | None = None) -> None:
        """`options` are those of the source; without `query_name` every query that reads its topics counts.

        :raises OptionError: When an option cannot be, or there is no `kafka.group.id`.
        """
        parsed = stream_options(options)
        if not parsed.group_id:
            message = "option 'kafka.group.id' must name the group whose offsets tell of progress"
            raise OptionError(message)
        self._group_id = parsed.group_id
        self._connection = parsed.connection
        self._selection = parsed.selection
        self._query_name = query_name
        self._client: BlockingClient | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing has been read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing new has been read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was read has been committed."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Commit; what goes wrong is logged, as the query does not depend on it."""
        progress = event.progress
        if self._query_name is not None and progress.name != self._query_name:
            return
        offsets: dict[TopicPartition, int] = {}
        for source in progress.sources:
            offsets |= wanted_offsets(source.endOffset, self._selection)
        if not offsets:
            return
        try:
            self._commit(offsets)
        except (KafkaError, OSError) as error:
            _LOG.warning("progress of group '%s' is not committed: %s", self._group_id, error)

    def close(self) -> None:
        """Let go of the cluster."""
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
            )
        for error in self._client.groups.commit_offsets(self._group_id, offsets).values():
            if error is not None:
                raise error


def wanted_offsets(text: str | None, selection: Selection) -> dict[TopicPartition, int]:
    """The offsets in a source's JSON, if it has any, of partitions that are selected."""
    try:
        offsets = flat(without_ids(json.loads(text or "{}")))
    except (ValueError, AttributeError, TypeError):
        return {}  # another kind of source
    return {
        place: offset
        for place, offset in offsets.items()
        if _is_offset(offset) and _is_selected(place, selection)
    }


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_selected(place: TopicPartition, selection: Selection) -> bool:
    match selection:
        case Subscribe(topics):
            return place.topic in topics
        case Assign(partitions):
            return place in partitions
    return re.fullmatch(selection.pattern, place.topic) is not None
