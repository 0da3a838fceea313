"""One shard of groups without a broker: clock, timers, log and cluster are plain values."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.runner import RETRY_MS
from barnabas.coordinator.shard import RecordPosition, Step
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.shard import GroupShard
from barnabas.metadata.configs import GROUP_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topics import TOPICS
from barnabas.wire.coordinator_records.serde import GROUP_RECORDS, CoordinatorRecord, encode
from barnabas.wire.errors import KafkaError
from support.images import RULES, cluster, new_topic, replayed

#: Initial time.
START_MS = 1_000_000

Event = Callable[[GroupShard, CoordinatorResult, Pending[Any]], None]


class GroupWorld:
    """Feeds events to a shard and performs their results, as `ShardRunner` does; checks invariants after each."""

    def __init__(self, **config: str) -> None:
        """`config` holds broker keys, with underscores for dots."""
        self.now_ms = START_MS
        self.image = cluster()
        self.originals = {key.replace("_", "."): value for key, value in config.items()}
        self.config = BrokerConfig(self.originals)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[TimerKey, int] = {}  #: key -> due time
        self.answers: dict[Pending[Any], Any] = {}
        self.last = CoordinatorResult(self.now_ms)  #: result of the last event
        self.last_request: Pending[Any] = Pending()  #: the last request
        self.refusal: KafkaError | None = None  #: error of every append
        self._rng = random.Random(7)
        self.shard = self._new_shard()

    def _new_shard(self) -> GroupShard:
        return GroupShard(GroupCoordinatorContext(lambda: self.config, lambda: self.image, self._rng))

    # Events

    def ask(self, event: Event) -> Any:
        """Return the response to a request, its error, or None while it is pending."""
        pending = self.last_request = Pending()
        result = CoordinatorResult(self.now_ms)
        try:
            event(self.shard, result, pending)
        except KafkaError as error:
            self.last = CoordinatorResult(self.now_ms)
            self.check()
            return error
        if not self._perform(result):
            self.answers.setdefault(pending, self.refusal)
        return self.answers.get(pending)

    def run_event(self, event: Callable[[GroupShard, CoordinatorResult], None]) -> bool:
        """Run an event that has no response; return False if its records are refused."""
        result = CoordinatorResult(self.now_ms)
        event(self.shard, result)
        return self._perform(result)

    def _perform(self, result: CoordinatorResult) -> bool:
        if result.records and self.refusal is not None:
            return self._refuse(result, self.refusal)
        for record in result.records:
            self.log.append(encode(record.key, record.value, record.value_version))
            self.shard.replay(self._read(*self.log[-1]), RecordPosition(len(self.log) - 1, result.now_ms))
        for key, delay_ms in result.timers:
            self.timers.pop(key, None)
            if delay_ms is not None:
                self.timers[key] = result.now_ms + max(delay_ms, 0)
        self.answers.update(result.responses)
        self.last = result
        self.check()
        return True

    def _refuse(self, result: CoordinatorResult, refusal: KafkaError) -> bool:
        self.last = CoordinatorResult(result.now_ms)
        self.check()
        if result.on_append_error is not None:
            result.on_append_error(self.last, refusal)
            return self._perform(self.last)
        self.answers.update(dict.fromkeys((pending for pending, _ in result.responses), refusal))
        return False

    @staticmethod
    def _read(key: bytes, value: bytes | None) -> CoordinatorRecord:
        record = GROUP_RECORDS.decode(key, value)
        assert isinstance(record, CoordinatorRecord)
        return record

    def pass_time(self, duration_ms: int) -> list[CoordinatorResult]:
        """Return the results of the timers that become due, one after the other."""
        end_ms = self.now_ms + duration_ms
        steps = []
        while due := [key for key, due_ms in self.timers.items() if due_ms <= end_ms]:
            key = min(due, key=self.timers.__getitem__)
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self._expire(key)
            steps.append(self.last)
        self.now_ms = end_ms
        return steps

    def _expire(self, key: TimerKey) -> None:
        if not self.run_event(lambda shard, result: shard.expire(result, key)):
            self.timers[key] = self.now_ms + RETRY_MS

    def restart(self) -> None:
        """Load the shard on another broker, from the log alone."""
        before, self.refusal = self.shard.groups, None
        self.shard.on_unloaded()
        self.shard = self._new_shard()
        self.timers.clear()
        for offset, (key, value) in enumerate(self.log):
            self.shard.replay(self._read(key, value), RecordPosition(offset, self.now_ms))
        assert self.shard.groups.keys() == before.keys()
        self.run_event(lambda shard, result: shard.on_loaded(result))

    def check(self) -> None:
        """Check the invariants of all groups."""
        for group in self.shard.groups.values():
            group.validate()

    # The cluster

    def _follow(self, after: MetadataImage) -> None:
        before, self.image = self.image, after
        for step in self.shard.on_metadata_update(before, after):
            self._run_step(step)

    def _run_step(self, step: Step) -> None:
        self.run_event(lambda shard, result: step(result))

    def create_topic(self, name: str, partitions_count: int) -> None:
        requested = [new_topic(name, partitions_count)]
        decision = decide_create(self.image, requested, RULES, self._rng, validate_only=False)
        self._follow(replayed(self.image, decision))

    def grow_topic(self, name: str, partitions_count: int) -> None:
        topic = self.image.topics[name]
        grown = replace(topic, assignments=((1,),) * partitions_count)
        self._follow(replayed(self.image, Decision(None, (TOPICS.put(name, grown),))))

    def delete_topic(self, name: str) -> None:
        self._follow(replayed(self.image, Decision(None, (TOPICS.remove(name),))))

    def set_group_config(self, group_id: str, **configs: str) -> None:
        """Set a group's config; keys have underscores for dots."""
        overrides = {key.replace("_", "."): value for key, value in configs.items()}
        self._follow(replayed(self.image, Decision(None, (GROUP_CONFIGS.put(group_id, overrides),))))

    def set_config(self, **config: str) -> None:
        """Set the broker's config; keys have underscores for dots."""
        self.originals |= {key.replace("_", "."): value for key, value in config.items()}
        self.config = BrokerConfig(self.originals)
