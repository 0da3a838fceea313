"""Identifiers that many packages share: 128-bit Kafka ids and topic partitions."""

import base64
import re
from random import Random
from typing import NamedTuple

#: Kafka's "no id": sixteen zero bytes.
ZERO_UUID = bytes(16)

#: The id of the metadata topic in Apache Kafka, which no other topic gets (`Uuid.METADATA_TOPIC_ID`).
METADATA_TOPIC_UUID = bytes(15) + b"\x01"

_PRINTED_UUID = re.compile(r"[A-Za-z0-9_-]{22}")


def uuid_to_text(uuid: bytes) -> str:
    """Return the 22 characters in which Kafka prints a 16-byte id: URL-safe base64 without padding."""
    assert len(uuid) == 16, len(uuid)
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def random_id(rng: Random) -> str:
    """Return a new id as text. As in Kafka, it has no dash at the start: commands would take it for an option."""
    while (text := uuid_to_text(rng.randbytes(16))).startswith("-"):
        pass
    return text


def uuid_from_text(text: str) -> bytes:
    """Return the 16 bytes of an id as Kafka prints it.

    :raises ValueError: When `text` is not a printed id.
    """
    if not _PRINTED_UUID.fullmatch(text):
        message = f"invalid Kafka id '{text}': expected 22 characters of URL-safe base64"
        raise ValueError(message)
    return base64.urlsafe_b64decode(text + "==")


class ProducerIdAndEpoch(NamedTuple):
    """Identifies an idempotent producer (KIP-98)."""

    producer_id: int
    producer_epoch: int


class TopicIdPartition(NamedTuple):
    """A partition by the id of its topic, which differs from that of an earlier topic of the same name (KIP-516)."""

    topic_id: bytes
    partition: int


class TopicPartition(NamedTuple):
    """A partition by topic name and index; prints like Kafka's directory names."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
