"""Offsets of deleted topics are deleted."""

from random import Random

from barnabas.groups.offsets.deletions import LOOKED_AT_ONCE_MAX
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.trash import TrashEntry
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_purge, decide_undelete
from support.images import RULES, cluster, new_topic, replayed
from support.offsets import OffsetLog


def recreated(image: MetadataImage, topic: str) -> MetadataImage:
    """Return the image with a new topic, whose id no other topic of the test has."""
    return replayed(image, decide_create(image, [new_topic(topic)], RULES, Random(8), validate_only=False))


def without(image: MetadataImage, topic: str) -> MetadataImage:
    return replayed(image, decide_delete(image, [TopicToDelete(topic)]))


def test_deleting_a_topic_deletes_its_offsets() -> None:
    before = cluster(1, new_topic("t", 2), new_topic("tt"))
    log = OffsetLog(before)
    log.commit({"t": {0: 1, 1: 1}, "tt": {0: 1}})
    log.commit({"t": {0: 1}}, "other")
    log.commit_in_transaction(7, {"t": {0: 2}})
    after = log.image = without(before, "t")
    log.follow(before, after)
    log.end(7, commit=True)
    assert log.fetch() == {("tt", 0): 1}
    assert log.fetch("other") == {}
    assert not list(log.manager.on_metadata_update(after, after))


def test_offsets_of_a_recreated_topic_are_kept() -> None:
    before = cluster(1, new_topic("t"))
    log = OffsetLog(before)
    gone = without(before, "t")
    log.image = recreated(gone, "t")
    assert log.image.topics["t"].topic_id != before.topics["t"].topic_id
    log.commit({"t": {0: 5}})
    log.follow(before, gone)
    assert log.fetch() == {("t", 0): 5}


def test_offsets_are_deleted_when_their_topic_enters_the_trash_and_not_when_it_leaves_it() -> None:
    before = cluster(1, new_topic("t"))
    log = OffsetLog(before)
    log.commit({"t": {0: 5}})
    gone = replayed(before, decide_delete(before, [TopicToDelete("t")], trash=TrashEntry(0, "User:alice")))
    log.image = gone
    log.follow(before, gone)
    assert log.fetch() == {}
    log.image = recreated(gone, "t")
    log.commit({"t": {0: 7}})
    purged = replayed(log.image, decide_purge(log.image, [TrashedTopicRequest("t")]))
    log.follow(log.image, purged)
    assert log.fetch() == {("t", 0): 7}


def test_a_deletion_that_is_tried_again_late_spares_the_offsets_of_an_undeleted_topic() -> None:
    before = cluster(1, new_topic("t"))
    log = OffsetLog(before)
    log.commit({"t": {0: 5}})
    gone = replayed(before, decide_delete(before, [TopicToDelete("t")], trash=TrashEntry(0, "User:alice")))
    log.image = replayed(gone, decide_undelete(gone, TrashedTopicRequest("t"), None))
    log.follow(before, gone)
    assert log.fetch() == {("t", 0): 5}


def test_a_restart_deletes_the_offsets_of_topics_in_the_trash_and_of_those_deleted_while_it_loads() -> None:
    before = cluster(1, new_topic("t"), new_topic("u"), new_topic("v"))
    log = OffsetLog(before)
    log.commit({"t": {0: 5}, "u": {0: 6}, "v": {0: 7}})
    log.image = replayed(
        before, decide_delete(before, [TopicToDelete("t")], trash=TrashEntry(0, "User:alice"))
    )
    begun = log.image
    log.image = recreated(without(begun, "u"), "t")
    log.commit({"t": {1: 1}})
    log.reload()
    log.catch_up(begun)
    assert log.fetch() == {("t", 1): 1, ("v", 0): 7}


def test_a_restart_keeps_the_offsets_of_topics_that_are_not_known_yet_and_of_recreated_ones() -> None:
    before = cluster(1, new_topic("t"))
    log = OffsetLog(before)
    log.image = recreated(before, "new")
    log.commit({"new": {0: 5}})
    log.image = before
    log.commit({"unknown": {0: 6}})
    gone = without(before, "t")
    log.image = recreated(gone, "t")
    log.commit({"t": {0: 7}})
    log.reload()
    log.catch_up(before)
    assert log.fetch() == {("new", 0): 5, ("unknown", 0): 6, ("t", 0): 7}


def test_few_offsets_are_looked_at_in_one_step_when_a_topic_is_deleted() -> None:
    before = cluster(1, new_topic("t", 2), new_topic("u"))
    log = OffsetLog(before)
    log.commit({"t": dict.fromkeys(range(LOOKED_AT_ONCE_MAX), 1), "u": {0: 1}})
    log.commit({"t": dict.fromkeys(range(LOOKED_AT_ONCE_MAX), 1)}, "other")
    after = log.image = without(before, "t")
    counts = []
    for step in log.manager.on_metadata_update(before, after):
        log.run_step(step)
        counts.append(len(log.last.records))
        assert not log.last.is_atomic
    assert counts == [LOOKED_AT_ONCE_MAX, LOOKED_AT_ONCE_MAX - 1, 1]
    assert log.fetch() == {("u", 0): 1}
