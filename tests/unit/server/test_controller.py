import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.metadata.broker_lifecycle import JoiningReplicas, decide_join, decide_register_in_new_epoch
from barnabas.metadata.brokers import SESSIONS, decide_register
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import CHANGES_MAX
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topics import NO_LEADER, PARTITION_STATES, partition_key
from barnabas.metadata.writer import MetadataWriter
from barnabas.server.controller import CHECKED_TOPICS_COUNT, Controller
from barnabas.telemetry.metrics import MetricsRegistry
from support.images import RULES, broker, decide_isr, manually_assigned, register_brokers
from support.loop import in_virtual_time, turns
from support.memory_store import MemoryStore


def rules_of(writer: MetadataWriter) -> ElectionRules:
    return ElectionRules(allows_unclean=lambda topic: bool(writer.image.topic_configs.get(topic)))


async def until_quiet() -> None:
    await turns(200)


@asynccontextmanager
async def controllers(
    count: int, partitions_count: int = 1, changes_max: int = CHANGES_MAX, replication_factor: int = 1
) -> AsyncIterator[tuple[MemoryStore, list[Controller], MetadataWriter]]:
    """Run the controllers of brokers 1, 2, ... over one store, with a topic that broker 1 prefers to lead."""
    store = MemoryStore(changes_max=changes_max)
    writers = [MetadataWriter(store) for _ in range(count)]
    for writer in writers:
        await writer.start()
    first = writers[0]
    for broker_id in range(1, count + 1):
        await register_brokers(first, broker_id)
        await first.write(lambda _, number=broker_id: Decision(None, (SESSIONS.put(str(number), 0),)))  # type: ignore[misc]
    topic = manually_assigned("t", *[list(range(1, count + 1))] * partitions_count)
    await first.write(
        lambda image: decide_create(image, [topic], RULES, random.Random(1), validate_only=False)
    )
    running = [
        Controller(number, writer, lambda *_: replication_factor, rules_of(writer), 10.0)
        for number, writer in enumerate(writers, 1)
    ]
    for controller in running:
        controller.start()
    await until_quiet()
    try:
        yield store, running, writers[-1]
    finally:
        for controller in running:
            await controller.stop()
        for writer in writers:
            await writer.stop()


def leader(image: MetadataImage) -> int:
    return image.partition(image.topics["t"], 0).leader


@in_virtual_time
async def test_the_first_live_broker_fences_a_dead_one_and_elects() -> None:
    async with controllers(3) as (store, running, last):
        store.end_session("sessions/1")
        await until_quiet()
        assert last.image.brokers["1"].fenced
        assert leader(last.image) == 2
        assert [controller.is_active for controller in running] == [False, True, False]
        assert [controller.fenced_count for controller in running] == [0, 1, 0]


def metrics(controller: Controller) -> list[str]:
    registry = MetricsRegistry()
    controller.register_metrics(registry)
    return [line for line in registry.render().decode().splitlines() if not line.startswith("#")]


@in_virtual_time
async def test_the_metrics_of_the_cluster_are_those_of_the_controller() -> None:
    async with controllers(2, partitions_count=3) as (store, (first, second), last):
        store.end_session("sessions/2")
        await until_quiet()
        topic = last.image.topics["t"]
        offline = replace(last.image.partition(topic, 0), leader=NO_LEADER)
        change = PARTITION_STATES.put(partition_key(topic.topic_id, 0), offline)
        await last.write(lambda _: Decision(None, (change,)))
        await turns()
        assert [line.split()[1] for line in metrics(second)] == ["0.0"] * 3
        assert metrics(first) == [
            "barnabas_active_controller 1.0",
            "barnabas_offline_partitions 1.0",
            "barnabas_fenced_brokers 1.0",
        ]


@in_virtual_time
async def test_the_partitions_of_a_dead_broker_are_changed_in_commits_that_the_store_allows() -> None:
    async with controllers(3, partitions_count=20, changes_max=47) as (store, _, last):
        limit = last.partitions_max
        assert limit == 5
        store.end_session("sessions/1")
        await until_quiet()
        topic = last.image.topics["t"]
        assert {last.image.partition(topic, index).leader for index in range(20)} == {2}
        await last.write(lambda _: Decision(None, (SESSIONS.put("1", 0),)))
        await last.write(lambda image: decide_register_in_new_epoch(image, broker(1), is_clean=True))
        for index in range(20):
            await last.write(lambda image, index=index: decide_isr(image, "t", index, (2, 3, 1)))  # type: ignore[misc]
        await asyncio.sleep(11)  # the preferred leader leads again
        await until_quiet()
        assert {last.image.partition(topic, index).leader for index in range(20)} == {1}


@in_virtual_time
async def test_an_internal_topic_gets_replicas_on_a_broker_that_joined_while_it_was_created() -> None:
    """The creation was decided before, and does not depend on brokers that it does not use."""
    async with controllers(2, replication_factor=2) as (_, _, last):
        topic = manually_assigned(GROUP_TOPIC, [1])
        await last.write(
            lambda image: decide_create(image, [topic], RULES, random.Random(1), validate_only=False)
        )
        await until_quiet()
        state = last.image.partition(last.image.topics[GROUP_TOPIC], 0)
        assert (state.replicas, state.adding) == ((1, 2), (2,))


@in_virtual_time
async def test_a_controller_waits_for_a_slow_store() -> None:
    async with controllers(2) as (store, _, last):
        store.hold()
        store.end_session("sessions/1")
        await until_quiet()
        assert leader(last.image) == 1
        store.release()
        await until_quiet()
        assert leader(last.image) == 2


@in_virtual_time
async def test_a_preferred_leader_that_is_not_in_sync_does_not_lead() -> None:
    async with controllers(2) as (store, _, last):
        store.end_session("sessions/1")
        await until_quiet()
        assert leader(last.image) == 2
        await last.write(lambda _: Decision(None, (SESSIONS.put("1", 0),)))
        await last.write(lambda image: decide_register(image.brokers, broker(1)))
        state = last.image.partition(last.image.topics["t"], 0)
        assert state.isr == (2,)
        await asyncio.sleep(11)
        await until_quiet()
        assert leader(last.image) == 2  # broker 1 is not in sync


@in_virtual_time
async def test_a_broker_that_is_alone_changes_nothing() -> None:
    async with controllers(1) as (_, [controller], last):
        revision = last.image.revision
        await until_quiet()
        assert last.image.revision == revision
        counts = controller.statistics()
        assert (counts["is_active"], counts["fenced_count"], counts["elections_count"]) == (1, 0, 0)


@in_virtual_time
async def test_configs_of_topics_that_need_no_election_do_not_check_all_partitions() -> None:
    async with controllers(2) as (_, [controller, _], last):
        before = controller.checks_count
        for name in ("t", "gone"):
            change = TOPIC_CONFIGS.put(name, {"retention.ms": "1"})
            await last.write(lambda _, change=change: Decision(None, (change,)))  # type: ignore[misc]
        await until_quiet()
        assert controller.checks_count == before
        many = tuple(
            TOPIC_CONFIGS.put(f"t{n}", {"retention.ms": "1"}) for n in range(CHECKED_TOPICS_COUNT + 1)
        )
        await last.write(lambda _: Decision(None, many))
        await until_quiet()
        assert controller.checks_count == before + 1


@in_virtual_time
async def test_a_topic_that_begins_to_allow_it_gets_a_leader_that_is_not_in_sync() -> None:
    async with controllers(3) as (store, _, last):
        for broker_id in (1, 2):
            store.end_session(f"sessions/{broker_id}")
            await until_quiet()
        await last.write(lambda _: Decision(None, (SESSIONS.put("1", 0),)))
        await last.write(lambda image: decide_join(image, broker(1), JoiningReplicas(is_clean=True)))
        store.end_session("sessions/3")
        await until_quiet()
        assert leader(last.image) == NO_LEADER
        allowed = TOPIC_CONFIGS.put("t", {"unclean.leader.election.enable": "true"})
        await last.write(lambda _: Decision(None, (allowed,)))
        await until_quiet()
        state = last.image.partition(last.image.topics["t"], 0)
        assert (state.leader, state.isr) == (1, (1,))
