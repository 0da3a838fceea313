"""Text scenarios of transactional ids: requests of producers to one coordinator, and events around it."""

from barnabas.base.ids import TopicPartition
from barnabas.coordinator.result import CoordinatorResult
from barnabas.transactions.listing import Filter
from barnabas.transactions.partitions import Addition
from barnabas.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, TransactionMetadata
from barnabas.wire.coordinator_records.serde import CoordinatorRecord
from barnabas.wire.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from barnabas.wire.errors import ErrorCode, KafkaError
from support.scenarios import words_of
from support.transaction_shards import TransactionWorld


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def _format_partitions(partitions: frozenset[TopicPartition]) -> str:
    return " ".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "no partitions"


class TransactionScenario:
    """Commands on one shard; each method named like a verb executes it."""

    def __init__(self) -> None:
        self.world = TransactionWorld()

    async def run(self, command: str) -> list[str]:
        """Execute a command, and return its output."""
        verb, plain, options = words_of(command)
        try:
            outcome = getattr(self, f"_{verb}")(plain, {key: int(value) for key, value in options.items()})
        except KafkaError as error:
            outcome = [f"refused: {error.code.name}"]
        lines = [*outcome, *map(self._record, self.world.appended), *self._format_pending_markers()]
        self.world.appended, self.world.effects = [], []
        return lines

    def _record(self, record: CoordinatorRecord) -> str:
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        if value is None:
            return f"tombstone: {key.transactional_id}"
        assert isinstance(value, TransactionLogValue)
        stored = TransactionMetadata.of(key, value)
        words = [f"record: {stored.transactional_id} {stored.state}"]
        words.append(f"producer={stored.producer_id} epoch={stored.producer_epoch}")
        if stored.next_producer_id != NO_PRODUCER_ID:
            words.append(f"next_producer={stored.next_producer_id}")
        if stored.partitions:
            words.append(_format_partitions(stored.partitions))
        words.append(f"version={stored.client_version}")
        return " ".join(words)

    def _format_pending_markers(self) -> list[str]:
        return [
            f"pending markers: {transaction.state} producer={transaction.producer_id} "
            f"epoch={transaction.producer_epoch} {_format_partitions(transaction.partitions)}"
            for transaction in (getattr(effect, "transaction", None) for effect in self.world.effects)
            if transaction is not None
        ]

    def _who(self, transaction: TransactionMetadata) -> list[str]:
        return [f"answer: producer={transaction.producer_id} epoch={transaction.producer_epoch}"]

    def _cluster(self, plain: list[str], options: dict[str, int]) -> list[str]:
        self.world.level = options["version"]
        return []

    def _init(self, plain: list[str], options: dict[str, int]) -> list[str]:
        expected = (options["producer"], options["epoch"]) if "producer" in options else None
        return self._who(self.world.init(plain[0], options.get("timeout_ms", 60_000), expected))

    def _add(self, plain: list[str], options: dict[str, int]) -> list[str]:
        name, *partitions = plain
        self.world.add(
            name,
            options["producer"],
            options["epoch"],
            *map(_partition, partitions),
            version=options.get("version", 2),
        )
        return ["answer: added"]

    def _verify(self, plain: list[str], options: dict[str, int]) -> list[str]:
        name, *partitions = plain
        request = Addition(name, options["producer"], options["epoch"], list(map(_partition, partitions)))
        outcomes = self.world.shard.verify_partitions(request)
        return [f"answer: {each.topic}-{each.partition} {code.name}" for each, code in outcomes.items()]

    def _commit(self, plain: list[str], options: dict[str, int]) -> list[str]:
        return self._end(plain, options, commit=True)

    def _abort(self, plain: list[str], options: dict[str, int]) -> list[str]:
        return self._end(plain, options, commit=False)

    def _end(self, plain: list[str], options: dict[str, int], *, commit: bool) -> list[str]:
        version = options.get("version", 2)
        ended = self.world.end(
            plain[0], options["producer"], options["epoch"], commit=commit, version=version
        )
        return self._who(ended)

    def _markers(self, plain: list[str], options: dict[str, int]) -> list[str]:
        appended = []
        while self.world.markers:
            result = CoordinatorResult(self.world.now_ms)
            self.world.shard.markers_written(result, self.world.markers.pop(0))
            self.world.perform(result)
            appended += self.world.appended
        self.world.appended = appended
        return []

    def _wait(self, plain: list[str], options: dict[str, int]) -> list[str]:
        effects = []
        end_ms = self.world.now_ms + options["ms"]
        records = []
        while self.world.timers and (due := min(self.world.timers.values())) <= end_ms:
            records += self.world.wait(due - self.world.now_ms)
            effects += self.world.effects
        self.world.wait(end_ms - self.world.now_ms)
        self.world.appended, self.world.effects = records, effects
        return []

    def _restart(self, plain: list[str], options: dict[str, int]) -> list[str]:
        self.world.start()
        return []

    def _epoch(self, plain: list[str], options: dict[str, int]) -> list[str]:
        """Set a producer's epoch."""
        known = self.world[plain[0]]
        self.world.shard.transactions[plain[0]] = known._replace(
            producer_epoch=options["is"], last_epoch=NO_EPOCH
        )
        return []

    def _log(self, plain: list[str], options: dict[str, int]) -> list[str]:
        refused = plain == ["refuses"]
        self.world.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if refused else None
        return []

    def _describe(self, plain: list[str], options: dict[str, int]) -> list[str]:
        found = self.world.shard.find(plain[0])
        times = f"timeout_ms={found.timeout_ms} started_ms={found.started_ms}"
        who = f"producer={found.producer_id} epoch={found.producer_epoch}"
        return [f"answer: {found.state} {who} {times} {_format_partitions(found.partitions)}"]

    def _list(self, plain: list[str], options: dict[str, int]) -> list[str]:
        request = Filter(states=frozenset(plain), duration_ms=options.get("longer_than_ms", -1))
        found = self.world.shard.matching(request, self.world.now_ms)
        return [f"answer: {each.transactional_id} {each.state}" for each in found] or ["answer: none"]
