import pytest

from barnabas.base.ids import uuid_to_text
from barnabas.metadata.cluster import CLUSTER, KEY, decide_form
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import NEVER
from support.images import replayed

RANDOM_ID = bytes(range(16))


@pytest.mark.parametrize(
    ("found_id", "expected"), [(None, uuid_to_text(RANDOM_ID)), ("as-kafka-wrote-it", "as-kafka-wrote-it")]
)
def test_a_cluster_is_formed_once(found_id: str | None, expected: str) -> None:
    decision = decide_form(MetadataImage().cluster, RANDOM_ID, found_id)
    assert decision.response == expected
    assert decision.reads == {CLUSTER.key(KEY): NEVER}
    image = replayed(MetadataImage(), decision)
    assert image.cluster[KEY].cluster_id == expected
    again = decide_form(image.cluster, bytes(16), "another")
    assert (again.response, again.changes) == (expected, ())


def test_a_cluster_keeps_its_first_secret() -> None:
    image = replayed(MetadataImage(), decide_form(MetadataImage().cluster, RANDOM_ID, None, b"first"))
    assert image.cluster[KEY].secret == b"first"
    assert decide_form(image.cluster, RANDOM_ID, None, b"second").changes == ()
    assert "first" not in repr(image.cluster[KEY])


def test_a_store_without_secrets_gets_one() -> None:
    image = replayed(MetadataImage(), decide_form(MetadataImage().cluster, RANDOM_ID, None))
    decision = decide_form(image.cluster, bytes(16), None, b"new")
    after = replayed(image, decision)
    assert (after.cluster[KEY].cluster_id, after.cluster[KEY].secret) == (uuid_to_text(RANDOM_ID), b"new")
