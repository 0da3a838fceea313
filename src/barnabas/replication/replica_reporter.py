"""Reports replicas of this broker that have no usable log, so that others lead their partitions."""

from functools import partial

from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.offline_replicas import decide_report_lost, decide_report_offline
from barnabas.metadata.woken_task import WokenTask
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.replica_fetchers import ReplicaFetchers
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.telemetry.logs import get_logger

#: After which time to try again if the store failed.
RETRY_S = 0.5

_log = get_logger("barnabas.replication")


class ReplicaReporter:
    """Reports failed log directories, and replicas without a log, which are copied from their leaders then."""

    def __init__(
        self,
        broker_id: int,
        replicas: ReplicaManager,
        fetchers: ReplicaFetchers,
        metadata: MetadataWriter,
        rules: ElectionRules,
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._fetchers = fetchers
        self._metadata = metadata
        self._rules = rules
        self._reporting = WokenTask(
            "replica-reports",
            self._report,
            retry_s=RETRY_S,
            log=_log,
            warning="cannot report replicas without a log; retrying",
        )
        self.reported_count = 0
        replicas.on_missing_log = self.wake

    def start(self) -> None:
        self._reporting.wake()
        self._reporting.start()

    async def stop(self) -> None:
        await self._reporting.stop()

    def wake(self) -> None:
        """Look for replicas to report, because a log directory has failed or a log was not found."""
        self._reporting.wake()

    async def _report(self) -> None:
        await self._report_offline()
        await self._report_lost()

    async def _report_offline(self) -> None:
        offline = self._replicas.offline_replicas()
        decide = partial(decide_report_offline, broker_id=self._broker_id, offline=offline, rules=self._rules)
        while count := await self._metadata.write(decide, is_large=True):
            self.reported_count += count
            _log.warning("reported replicas whose log directory has failed", partitions_count=count)

    async def _report_lost(self) -> None:
        while all_lost := self._replicas.lost_replicas():
            lost = sorted(all_lost)[: self._metadata.partitions_max]
            await self._metadata.write(
                partial(decide_report_lost, broker_id=self._broker_id, lost=lost, rules=self._rules)
            )
            self.reported_count += len(lost)
            await self._replicas.open_empty(lost)
            self._fetchers.follow_opened(lost)

    def statistics(self) -> dict[str, int]:
        return {"reported_count": self.reported_count}
