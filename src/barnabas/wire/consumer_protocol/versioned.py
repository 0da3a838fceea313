"""Encodes and decodes subscriptions and assignments: an int16 version, then the message (KIP-415, KIP-792, KIP-881).

A version newer than ours is read as our newest: later versions only append fields.
"""

import struct
from typing import TypeVar

from barnabas.base.buffers import Buffer
from barnabas.wire.codec import DecodeError, decode, encode
from barnabas.wire.consumer_protocol.assignment import ConsumerProtocolAssignment
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.schema import Message

_INT16 = struct.Struct(">h")

MessageT = TypeVar("MessageT", bound=Message)


def read_subscription(buffer: Buffer) -> ConsumerProtocolSubscription:
    """Return a member's subscription.

    :raises DecodeError: When the bytes are not a subscription.
    """
    return _read(ConsumerProtocolSubscription, buffer)


def read_assignment(buffer: Buffer) -> ConsumerProtocolAssignment:
    """Return a member's assignment.

    :raises DecodeError: When the bytes are not an assignment.
    """
    return _read(ConsumerProtocolAssignment, buffer)


def write(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """Encode the version and the message."""
    return bytes(encode(message, version, bytearray(_INT16.pack(version))))


def version_of(buffer: Buffer) -> int:
    """Return the version of a subscription or assignment.

    :raises DecodeError: When there are too few bytes.
    """
    if len(buffer) < _INT16.size:
        message = f"A subscription or assignment of {len(buffer)} bytes: the first two are its version."
        raise DecodeError(message)
    version: int
    (version,) = _INT16.unpack_from(buffer)
    return version


def _read(kind: type[MessageT], buffer: Buffer) -> MessageT:
    version = version_of(buffer)
    if version < kind.VERSIONS.first:
        message = f"{kind.__name__} version {version}: {kind.VERSIONS.first} is the first."
        raise DecodeError(message)
    return decode(kind, min(version, kind.VERSIONS.last), buffer, _INT16.size)
