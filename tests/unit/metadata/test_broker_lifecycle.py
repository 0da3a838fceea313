import pytest

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.broker_lifecycle import (
    JoiningReplicas,
    controller_id,
    dead_brokers,
    decide_elections,
    decide_end_session,
    decide_fence,
    decide_join,
    decide_leave,
    decide_prepare_join,
)
from barnabas.metadata.brokers import SESSIONS
from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.metadata.unregistration import decide_unregister
from support.images import broker, cluster, manually_assigned, replayed, with_elr


def with_sessions(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    for broker_id in broker_ids:
        image = replayed(image, Decision(None, (SESSIONS.put(str(broker_id), image.revision),)))
    return image


def without_session(image: MetadataImage, broker_id: int) -> MetadataImage:
    return replayed(image, Decision(None, (SESSIONS.remove(str(broker_id)),)))


def state(image: MetadataImage, topic: str, index: int = 0) -> PartitionRegistration:
    return image.partition(image.topics[topic], index)


def summary(image: MetadataImage, topic: str = "t", index: int = 0) -> tuple[int, int, tuple[int, ...]]:
    """Return the leader, its epoch, and the in-sync replicas."""
    found = state(image, topic, index)
    return found.leader, found.leader_epoch, found.isr


def elections(image: MetadataImage, *, unclean: bool = False, limit: int = 1000) -> Decision[int]:
    return decide_elections(image, ElectionRules(allows_unclean=lambda _: unclean), limit)


def fenced(image: MetadataImage, broker_id: int) -> MetadataImage:
    """Return the image after a broker has died, and leaders are elected."""
    image = replayed(
        without_session(image, broker_id), decide_fence(without_session(image, broker_id), broker_id)
    )
    return replayed(image, elections(image))


def joined(
    image: MetadataImage, broker_id: int, *, is_clean: bool = True, lost: bool = False
) -> MetadataImage:
    image = with_sessions(image, broker_id)
    lost_replicas = {(topic.topic_id, 0) for topic in image.topics.values()} if lost else set()
    replicas = JoiningReplicas(is_clean, lost_replicas)
    return replayed(image, decide_join(image, broker(broker_id), replicas))


THREE = with_sessions(
    cluster(3, manually_assigned("t", [1, 2, 3], [2, 3, 1]), manually_assigned("alone", [1])), 1, 2, 3
)


def test_the_live_broker_with_the_smallest_id_is_the_controller() -> None:
    assert controller_id(MetadataImage()) is None
    assert controller_id(THREE) == 1
    assert controller_id(without_session(THREE, 1)) == 2
    assert controller_id(replayed(THREE, decide_leave(THREE, 1))) == 2


def test_a_broker_without_a_session_is_fenced_and_others_lead_its_partitions() -> None:
    dead = without_session(THREE, 1)
    assert dead_brokers(THREE) == []
    assert dead_brokers(dead) == [1]
    after = fenced(THREE, 1)
    assert after.brokers["1"].fenced
    assert dead_brokers(after) == []
    assert summary(after) == (2, 1, (2, 3))
    assert summary(after, "t", 1) == (2, 0, (2, 3))
    assert summary(after, "alone") == (NO_LEADER, 1, (1,))


def test_a_broker_that_lives_is_not_fenced() -> None:
    assert decide_fence(THREE, 1) == Decision(None)
    assert decide_fence(THREE, 9) == Decision(None)


def test_fencing_conflicts_with_a_session_that_is_opened_again() -> None:
    dead = without_session(THREE, 1)
    assert decide_fence(dead, 1).reads[SESSIONS.key("1")] == 0


def test_elections_come_in_limited_commits_and_end() -> None:
    many = with_sessions(cluster(2, manually_assigned("t", *[[1, 2]] * 5)), 1, 2)
    image = replayed(many, decide_leave(many, 1))
    changed = []
    while count := elections(image, limit=2).response:
        changed.append(count)
        image = replayed(image, elections(image, limit=2))
    assert changed == [2, 2, 1]
    assert [summary(image, "t", index) for index in range(5)] == [(2, 1, (2,))] * 5


def test_a_replica_that_is_not_in_sync_leads_only_where_that_is_allowed() -> None:
    image = fenced(fenced(fenced(THREE, 1), 2), 3)
    assert summary(image) == (NO_LEADER, 3, (3,))
    image = joined(image, 1)
    assert elections(image).response == 0
    replaced = replayed(image, elections(image, unclean=True))
    assert summary(replaced) == (1, 4, (1,))
    assert elections(replaced, unclean=True).response == 0


def test_an_unclean_election_prefers_in_sync_replicas() -> None:
    dead = replayed(without_session(THREE, 1), decide_fence(without_session(THREE, 1), 1))
    assert summary(replayed(dead, elections(dead, unclean=True))) == (2, 1, (2, 3))


def test_the_last_in_sync_replica_leads_again_when_it_is_back() -> None:
    image = fenced(fenced(fenced(THREE, 1), 2), 3)
    assert summary(image) == (NO_LEADER, 3, (3,))
    image = joined(image, 2)
    assert summary(image) == (NO_LEADER, 3, (3,))
    image = joined(image, 3)
    assert summary(image) == (3, 4, (3,))


def test_each_start_has_a_larger_broker_epoch() -> None:
    epochs = [THREE.brokers["2"].epoch]
    image = THREE
    for _ in range(3):
        image = joined(image, 2)
        epochs.append(image.brokers["2"].epoch)
        assert not image.brokers["2"].fenced
    assert epochs == sorted(set(epochs))


def test_after_a_clean_stop_nothing_changes() -> None:
    image = joined(THREE, 1)
    assert summary(image) == (1, 0, (1, 2, 3))


def test_after_an_unclean_stop_a_broker_leaves_the_isr_and_never_continues_a_leader_epoch() -> None:
    image = joined(THREE, 1, is_clean=False)
    assert summary(image) == (2, 1, (2, 3))
    assert summary(image, "t", 1) == (2, 0, (2, 3))
    assert summary(image, "alone") == (1, 1, (1,))


def test_a_broker_that_is_alone_keeps_its_leader_epochs() -> None:
    alone = with_sessions(cluster(1, manually_assigned("t", [1])), 1)
    assert summary(joined(alone, 1, is_clean=False)) == (1, 0, (1,))


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_empty_replica_never_leads(is_clean: bool) -> None:
    image = joined(THREE, 1, is_clean=is_clean, lost=True)
    assert summary(image) == (2, 1, (2, 3))
    assert summary(image, "alone") == (NO_LEADER, 1, ())
    assert summary(joined(image, 1), "alone") == (NO_LEADER, 1, ())


def test_a_broker_that_is_alone_begins_a_new_epoch_where_an_unregistered_one_may_have_followed() -> None:
    image = fenced(with_sessions(cluster(2, manually_assigned("t", [1, 2])), 1, 2), 2)
    image = replayed(image, decide_unregister(image, 2))
    assert summary(joined(image, 1)) == (1, 0, (1,))
    assert summary(joined(image, 1, is_clean=False)) == (1, 1, (1,))


def test_an_empty_replica_of_a_broker_that_is_alone_does_not_lead() -> None:
    alone = with_sessions(cluster(1, manually_assigned("t", [1])), 1)
    assert summary(joined(alone, 1, lost=True)) == (NO_LEADER, 1, ())


def test_a_broker_that_stops_in_order_hands_its_partitions_over() -> None:
    assert decide_leave(THREE, 1).response
    image = replayed(THREE, decide_leave(THREE, 1))
    image = replayed(image, elections(image))
    assert summary(image) == (2, 1, (2, 3))
    assert decide_leave(image, 1) == Decision(True)
    image = joined(image, 1)
    assert summary(image) == (2, 1, (2, 3))
    assert summary(image, "alone") == (1, 2, (1,))


def test_a_broker_that_is_alone_stops_without_a_change() -> None:
    alone = with_sessions(cluster(1, manually_assigned("t", [1])), 1)
    assert decide_leave(alone, 1) == Decision(False)


def test_a_replica_out_of_sync_is_not_elected() -> None:
    image = joined(THREE, 1, is_clean=False)
    image = fenced(fenced(image, 2), 3)
    assert summary(image) == (NO_LEADER, 3, (3,))


# Eligible leader replicas (KIP-966) and failed log directories

ELR = with_elr(THREE)
RULES = ElectionRules(min_isr=lambda topic: 2)


def fenced_with_elr(image: MetadataImage, broker_id: int) -> MetadataImage:
    dead = without_session(image, broker_id)
    image = replayed(dead, decide_fence(dead, broker_id))
    return replayed(image, decide_elections(image, RULES))


def rejoined_with_elr(
    image: MetadataImage, broker_id: int, *, is_clean: bool = True, **replicas: object
) -> MetadataImage:
    image = with_sessions(image, broker_id)
    joining = JoiningReplicas(is_clean, **replicas)  # type: ignore[arg-type]
    return replayed(image, decide_join(image, broker(broker_id), joining, RULES))


def elr_of(
    image: MetadataImage, topic: str = "t"
) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    found = state(image, topic)
    return found.leader, found.isr, found.elr, found.last_known_elr


def test_the_replica_that_left_before_the_last_one_may_lead() -> None:
    image = fenced_with_elr(fenced_with_elr(fenced_with_elr(ELR, 3), 2), 1)
    assert elr_of(image) == (NO_LEADER, (), (1, 2), (1,))
    assert elr_of(rejoined_with_elr(image, 3)) == (NO_LEADER, (), (1, 2), (1,))
    assert elr_of(rejoined_with_elr(image, 2)) == (2, (2,), (1,), ())


def test_an_unclean_stop_ends_eligibility_and_the_other_eligible_replica_is_awaited() -> None:
    image = fenced_with_elr(fenced_with_elr(fenced_with_elr(ELR, 3), 2), 1)
    image = rejoined_with_elr(image, 1, is_clean=False)
    assert elr_of(image) == (NO_LEADER, (), (2,), (1,))
    assert elr_of(rejoined_with_elr(image, 2)) == (2, (2,), (), ())


def test_the_last_leader_leads_again_if_no_replica_is_complete() -> None:
    image = fenced_with_elr(fenced_with_elr(fenced_with_elr(ELR, 3), 2), 1)
    image = rejoined_with_elr(image, 2, is_clean=False)
    assert elr_of(image) == (NO_LEADER, (), (1,), (1,))
    image = rejoined_with_elr(image, 1, is_clean=False)
    assert elr_of(image) == (1, (1,), (), ())


def test_the_last_leader_is_known_if_it_joins_before_the_others_have_left_the_isr() -> None:
    image = without_session(without_session(ELR, 2), 3)
    for broker_id in (2, 3):
        image = replayed(image, decide_fence(image, broker_id))
    image = rejoined_with_elr(image, 1, is_clean=False)  # 2 and 3 are dead, but in sync
    image = replayed(image, decide_elections(image, RULES))
    assert elr_of(image) == (NO_LEADER, (), (2, 3), (1,))
    for broker_id in (2, 3):
        image = rejoined_with_elr(image, broker_id, is_clean=False)
    assert elr_of(image) == (1, (1,), (), ())


def test_a_single_replica_leads_in_a_new_epoch_after_an_unclean_stop() -> None:
    image = rejoined_with_elr(ELR, 1, is_clean=False)
    assert (elr_of(image, "alone"), state(image, "alone").leader_epoch) == ((1, (1,), (), ()), 1)
    image = rejoined_with_elr(fenced_with_elr(ELR, 1), 1, is_clean=False)
    assert (elr_of(image, "alone"), state(image, "alone").leader_epoch) == ((1, (1,), (), ()), 2)


def test_an_empty_replica_is_neither_eligible_nor_elected() -> None:
    lost = {(topic.topic_id, 0) for topic in ELR.topics.values()}
    for image in (ELR, fenced_with_elr(ELR, 1)):
        after = rejoined_with_elr(image, 1, lost=lost)
        assert elr_of(after, "alone") == (NO_LEADER, (), (), ())
        assert elr_of(after) == (2, (2, 3), (), ())


def test_a_changed_min_insync_replicas_ends_eligibility_in_the_next_election() -> None:
    image = fenced_with_elr(fenced_with_elr(ELR, 3), 2)
    assert elr_of(image) == (1, (1,), (2,), ())
    after = replayed(image, decide_elections(image, ElectionRules(min_isr=lambda topic: 1)))
    assert elr_of(after) == (1, (1,), (), ())


def test_a_change_with_eligible_replicas_depends_on_the_configs() -> None:
    image = fenced_with_elr(ELR, 3)
    dead = without_session(image, 2)
    fencing = replayed(dead, decide_fence(dead, 2))
    assert {"topic_configs/t", "broker_configs/"} <= decide_elections(fencing, RULES).reads.keys()


def test_a_replica_in_a_failed_directory_is_offline_until_the_broker_joins_without_it() -> None:
    replica = TopicIdPartition(ELR.topics["t"].topic_id, 0)
    image = rejoined_with_elr(ELR, 1, offline={replica})
    assert (elr_of(image), state(image, "t").offline) == ((2, (2, 3), (), ()), (1,))
    assert replayed(image, decide_elections(image, RULES)) is image
    back = rejoined_with_elr(image, 1)
    assert (elr_of(back), state(back, "t").offline) == ((2, (2, 3), (), ()), ())


# Suspected brokers


def test_a_live_broker_ends_the_session_of_another_one_which_is_then_fenced() -> None:
    decision = decide_end_session(THREE, 2, THREE.brokers["2"].epoch, by=1)
    assert decision.response
    ended = replayed(THREE, decision)
    assert dead_brokers(ended) == [2]
    assert decision.reads.keys() == {"brokers/1", "brokers/2", "sessions/1", "sessions/2"}


def test_the_session_of_a_broker_that_has_joined_again_is_not_ended() -> None:
    epoch = THREE.brokers["2"].epoch
    assert decide_end_session(joined(THREE, 2), 2, epoch, by=1) == Decision(False)
    assert decide_end_session(without_session(THREE, 2), 2, epoch, by=1) == Decision(False)


def test_a_broker_that_is_dead_itself_ends_no_session() -> None:
    epoch = THREE.brokers["2"].epoch
    assert decide_end_session(without_session(THREE, 1), 2, epoch, by=1) == Decision(False)
    assert decide_end_session(THREE, 2, epoch, by=9) == Decision(False)


def test_partitions_that_do_not_exist_when_a_broker_joins_are_named() -> None:
    topic_id = THREE.topics["t"].topic_id
    present, missing = TopicIdPartition(topic_id, 0), TopicIdPartition(b"trashed".ljust(16), 0)
    decision = decide_prepare_join(THREE, 1, JoiningReplicas(is_clean=False), [missing, present])
    assert decision.response == [missing]
    after = replayed(THREE, decision)
    assert 1 not in state(after, "t").isr
