"""A registry: decides on its state, and writes decisions to its topic."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from barnabas.client.core.cluster import ClusterClient
from barnabas.registry.errors import SCHEMA_TOO_LARGE, STORE_ERROR, TIMED_OUT, RegistryError
from barnabas.registry.registration import RegistryDecision
from barnabas.registry.schema_log import SchemaLog, WriterFenced
from barnabas.registry.state import RegistryState
from barnabas.wire.errors import ErrorCode, KafkaError

#: How often a write is attempted while other registries write.
_ATTEMPTS_MAX = 20
_WRITE_TIMEOUT_S = 30.0

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

Decide = Callable[[RegistryState], RegistryDecision]


class SchemaRegistry:
    """One of perhaps several registries of a cluster; all of them may write."""

    def __init__(self, cluster: ClusterClient, log: SchemaLog) -> None:
        self.cluster = cluster
        self._log = log
        self._writing = asyncio.Lock()

    @property
    def state(self) -> RegistryState:
        """All that is read so far; others may have written more."""
        return self._log.state

    async def start(self) -> None:
        """Read all schemas.

        :raises KafkaError: If the cluster refuses it.
        :raises BrokerConnectionError: If no broker can be reached.
        """
        await self._log.start()

    async def close(self) -> None:
        await self._log.close()

    async def read(self, query: Callable[[RegistryState], Any]) -> Any:
        """Return the result of a query; if it fails, it is made again with all that others have written.

        :raises RegistryError: That of the query.
        """
        try:
            return query(self.state)
        except RegistryError:
            await self._stored(self._log.catch_up())
            return query(self.state)

    async def write(self, decide: Decide, *, at_once: bool = False) -> Any:
        """Make a decision on the latest state, write its records, and return its result.

        :param at_once: Whether a decision without records may be made on the state that is read so far.
        :raises RegistryError: That of the decision, or if the topic cannot be written.
        """
        if at_once:
            with suppress(RegistryError):  # others may have written what makes it possible
                decision = decide(self.state)
                if not decision.records:
                    return decision.result
        async with self._writing:
            return await self._stored(self._write(decide))

    async def _write(self, decide: Decide) -> Any:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            await self._log.become_writer()
            decision = decide(self.state)
            if not decision.records:
                return decision.result
            try:
                await self._log.append(decision.records)
            except WriterFenced:
                await self.cluster.retry.pause(attempt)
                continue
            return decision.result
        raise RegistryError(STORE_ERROR, f"other registries wrote first {_ATTEMPTS_MAX} times: try again")

    async def _stored(self, work: Any) -> Any:
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                return await work
        except TimeoutError:
            message = f"the topic of schemas did not respond within {_WRITE_TIMEOUT_S:.0f} s"
            raise RegistryError(TIMED_OUT, message) from None
        except (KafkaError, ConnectionError) as error:
            if isinstance(error, KafkaError) and error.code in _TOO_LARGE:
                raise RegistryError(
                    SCHEMA_TOO_LARGE, f"the schema is too large for its topic: {error}"
                ) from error
            raise RegistryError(STORE_ERROR, f"the topic of schemas cannot be used: {error}") from error
