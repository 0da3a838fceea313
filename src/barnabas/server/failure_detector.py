"""Ends the sessions of brokers that do not respond, before the store does."""

import asyncio
from collections.abc import Sequence
from functools import partial

from barnabas.base.clock import Clock
from barnabas.client.core.errors import BrokerConnectionError, BrokerUnreachable
from barnabas.metadata.broker_lifecycle import decide_end_session, live_brokers
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.broker_client import BrokerClient
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest

#: Pause between two probes of a broker.
PROBE_INTERVAL_S = 0.25

#: A broker that refuses so many connections in succession has ended.
REFUSALS_COUNT = 2

_log = get_logger("barnabas.controller")


class FailureDetector:
    """Probes the other live brokers, on the controller and on the broker that would be the next one.

    The controller ends the sessions of others, the next one that of the controller. A broker lives on if its session
    ends by mistake: it joins again, in a new broker epoch. Only a broker that has responded in its present epoch is
    suspected, so a connection that never works does not end its sessions again and again. If no other broker responds,
    this broker rather is the one that is cut off, and suspects none, unless the cluster has only two.
    """

    def __init__(self, broker_id: int, metadata: MetadataWriter, client: BrokerClient, clock: Clock) -> None:
        """:param client: Its request timeout is how long a probe may take."""
        self._broker_id = broker_id
        self._metadata = metadata
        self._client = client
        self._clock = clock
        self._running: asyncio.Task[None] | None = None
        self._probes: dict[int, asyncio.Task[None]] = {}
        #: broker id -> broker epoch, and start of the last probe that was answered
        self._responded: dict[int, tuple[int, int]] = {}
        self._refused: dict[
            int, list[int]
        ] = {}  #: broker id -> starts of the probes since then that were refused
        self.probes_count = 0
        self.suspicions_count = 0

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run(), name="failure-detector")

    async def stop(self) -> None:
        tasks = [*self._probes.values(), *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(PROBE_INTERVAL_S)
            started_ms = self._clock.monotonic_ms()
            for broker_id in self._watched():
                if broker_id not in self._probes:
                    self._probes[broker_id] = loop.create_task(self._probe(broker_id, started_ms))

    def _watched(self) -> list[int]:
        """Return the other live brokers if this one is the controller or the next one, else none."""
        live = live_brokers(self._metadata.image)
        return [each for each in live if each != self._broker_id] if self._broker_id in live[:2] else []

    async def _probe(self, broker_id: int, started_ms: int) -> None:
        epoch = self._epoch_of(broker_id)
        self.probes_count += 1
        try:
            await self._client.send(broker_id, ApiVersionsRequest())
        except BrokerUnreachable:
            refused = self._refused.setdefault(broker_id, [])
            refused.append(started_ms)
            if len(refused) >= REFUSALS_COUNT:
                await self._suspect(broker_id, epoch, refused[0])
        except BrokerConnectionError:
            await self._suspect(broker_id, epoch, started_ms)
        except KafkaError:
            self._has_responded(broker_id, epoch, started_ms)
        else:
            self._has_responded(broker_id, epoch, started_ms)
        finally:
            self._probes.pop(broker_id, None)

    def _epoch_of(self, broker_id: int) -> int:
        broker = self._metadata.image.brokers.get(str(broker_id))
        return -1 if broker is None else broker.epoch

    def _has_responded(self, broker_id: int, epoch: int, started_ms: int) -> None:
        self._responded[broker_id] = epoch, started_ms
        self._refused.pop(broker_id, None)

    async def _suspect(self, broker_id: int, epoch: int, since_ms: int) -> None:
        """End the session of a broker that does not respond, if it is this broker's task and there is no doubt.

        :param since_ms: Start of the first probe that failed.
        """
        live = live_brokers(self._metadata.image)
        if self._broker_id not in live[:2] or (self._broker_id != live[0] and broker_id != live[0]):
            return
        others = [each for each in live if each not in (self._broker_id, broker_id)]
        if self._responded.get(broker_id, (-1, 0))[0] != epoch or not self._is_reachable(others, since_ms):
            return
        decide = partial(decide_end_session, broker_id=broker_id, epoch=epoch, by=self._broker_id)
        try:
            if await self._metadata.write(decide):
                self.suspicions_count += 1
                self._refused.pop(broker_id, None)
                _log.warning("a broker does not respond; its session is ended", broker_id=broker_id)
        except KafkaError as error:
            _log.warning("cannot end the session of a broker that does not respond", why=error.message)

    def _is_reachable(self, others: Sequence[int], since_ms: int) -> bool:
        """Whether another live broker has answered a probe that started later; true without other brokers."""
        return not others or any(self._responded.get(each, (0, -1))[1] > since_ms for each in others)

    def statistics(self) -> dict[str, int]:
        return {"probes_count": self.probes_count, "suspicions_count": self.suspicions_count}
