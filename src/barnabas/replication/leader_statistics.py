"""Counts what happens to the partitions that a broker leads: elections, and changes of their in-sync replicas."""

from barnabas.base.ids import TopicPartition
from barnabas.metadata.topics import PartitionRegistration
from barnabas.telemetry.logs import get_logger

_log = get_logger("barnabas.replication")


class LeaderStatistics:
    """Like Kafka's metrics, each event is counted by one broker: the leader after it."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self.elections_count = 0
        self.unclean_elections_count = 0
        self.isr_shrinks_count = 0
        self.isr_expands_count = 0

    def count(self, tp: TopicPartition, before: PartitionRegistration, after: PartitionRegistration) -> None:
        """Count a change of a partition's state.

        An election is recognized as unclean if `before` is the state that it changed, and not an earlier one.
        """
        if after.leader != self._broker_id:
            return
        if before.leader == after.leader and before.leader_epoch == after.leader_epoch:
            self.isr_shrinks_count += bool(set(before.isr) - set(after.isr))
            self.isr_expands_count += bool(set(after.isr) - set(before.isr))
            return
        self.elections_count += 1
        is_next = after.partition_epoch == before.partition_epoch + 1
        # One change adds a replica to the ISR and completes the reassignment that added it.
        is_added = after.leader in before.adding and after.leader not in after.adding
        if is_next and not is_added and after.leader not in (*before.isr, *before.elr):
            self.unclean_elections_count += 1
            _log.warning(
                "an unclean election made this broker the leader; acknowledged records may be lost",
                partition=f"{tp.topic}-{tp.partition}",
                former_leader=before.leader,
                former_isr=before.isr,
                leader_epoch=after.leader_epoch,
            )

    def statistics(self) -> dict[str, int]:
        return {
            "elections_count": self.elections_count,
            "unclean_elections_count": self.unclean_elections_count,
            "isr_shrinks_count": self.isr_shrinks_count,
            "isr_expands_count": self.isr_expands_count,
        }
