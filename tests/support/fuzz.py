"""Random requests, valid ones of every API and version and damaged ones, reproducible by seed."""

import random
import struct
from collections.abc import Sequence
from typing import Any

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.schema import Field, Message, Struct
from support.batches import batch
from support.nodes import APIS, frame_of
from support.wire import Wire

NUMBERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
NUMBERS_LIKELY = (-1, 0, 0, 0, 1, 1, 2, 3, 100, 1000)
TEXTS = ("", "a", "b", "missing", ".", "no name", "größe", "x" * 300, "retention.ms", "1")


class RandomRequests:
    """Generates frames; the topics "a" and "b" should exist."""

    def __init__(self, seed: int, topic_ids: Sequence[bytes]) -> None:
        self.rng = random.Random(seed)
        self._topic_ids = [*topic_ids, bytes(16), bytes(range(16))]

    def frame(self, correlation_id: int) -> bytes:
        """Return a request of any API and version; every second one is damaged."""
        spec = self.rng.choice(list(APIS.values()))
        version = self.rng.randint(spec.versions.first, spec.versions.last)
        request = self._struct(spec.request, version)
        assert isinstance(request, Message)
        self._keep_short(request)
        frame = frame_of(request, version, correlation_id, self.rng.choice(["fuzz", None, ""]))
        return frame if self.rng.random() < 0.5 else self._damaged(frame)

    def garbage(self) -> bytes:
        """Return random bytes."""
        return self.rng.randbytes(self.rng.choice([0, 1, 7, 8, 20, 200]))

    def _struct(self, kind: type[Struct], version: int) -> Struct:
        return kind(
            **{field.name: self._value(field, version) for field in kind.FIELDS if version in field.versions}
        )

    def _value(self, field: Field, version: int) -> Any:
        if version in field.nullable and self.rng.random() < 0.1:
            return None
        if field.is_array:
            count = self.rng.choice([0, 1, 1, 1, 2, 3])
            return [self._single(field, version) for _ in range(count)]
        return self._single(field, version)

    def _single(self, field: Field, version: int) -> Any:
        rng = self.rng
        if field.kind == "struct":
            assert field.struct is not None
            return self._struct(field.struct, version)
        if field.kind in NUMBERS:
            first, last = NUMBERS[field.kind]
            likely = [number for number in NUMBERS_LIKELY if first <= number <= last]
            return rng.choice([*likely, first, last, rng.randint(first, last)])
        if field.kind == "float64":
            return rng.choice([-1.0, 0.0, 0.5, 1.0, 1e6, 1e308, float("inf"), float("nan")])
        if field.kind == "string":
            return rng.choice(TEXTS)
        if field.kind == "bool":
            return rng.random() < 0.5
        if field.kind == "uuid":
            return rng.choice(self._topic_ids)
        if field.kind == "records":
            return bytes(self._records())
        return rng.randbytes(rng.randint(0, 20))

    def _records(self) -> bytearray:
        records = bytearray(
            batch(*[b"value"] * self.rng.randint(1, 3), producer_id=self.rng.choice([-1, -1, 5]))
        )
        if self.rng.random() < 0.3:
            records[self.rng.randrange(len(records))] ^= 1 << self.rng.randrange(8)
        return records

    def _keep_short(self, request: Message) -> None:
        """Limit waits and topic sizes, so that requests neither block others nor fill the disk."""
        if hasattr(request, "max_wait_ms"):
            request.max_wait_ms = min(request.max_wait_ms, 1)
        for topic in getattr(request, "topics", None) or []:
            if isinstance(topic, str):
                continue
            for counter in ("num_partitions", "count"):
                if 10 < getattr(topic, counter, 0) <= 10_000:
                    setattr(topic, counter, 10)

    def _damaged(self, frame: bytes) -> bytes:
        rng, data = self.rng, bytearray(frame)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(data)) if data else 0
            match rng.randrange(6):
                case 0 if data:
                    data[at] ^= 1 << rng.randrange(8)
                case 1 if data:
                    data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
                case 2:
                    del data[at:]
                case 3:
                    data[at:at] = rng.randbytes(rng.randint(1, 8))
                case 4:
                    del data[at : at + rng.randint(1, 8)]
                case 5:
                    data[at : at + 4] = struct.pack(">i", rng.choice([-1, -2, 2**31 - 1, len(data)]))
        return bytes(data)


#: Sent after each frame: its response shows that the connection is alive.
PROBE_CORRELATION_ID = 2**31 - 7
PROBE = frame_of(ApiVersionsRequest(), 0, PROBE_CORRELATION_ID)

#: A response that takes longer is taken for a long poll.
PATIENCE_S = 1.0


class Fuzzed:
    """A connection that is reopened whenever the broker closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._wire = Wire(port)
        self.answers_count = self.closed_count = self.waiting_count = 0

    def send(self, frame: bytes) -> None:
        """Send one frame, and check whether the connection is alive."""
        self._wire.socket.settimeout(PATIENCE_S)
        try:
            self._wire.socket.sendall(
                b"".join(len(each).to_bytes(4, "big") + each for each in (frame, PROBE))
            )
            while self._correlation_id() != PROBE_CORRELATION_ID:
                pass
            self.answers_count += 1
        except (EOFError, ConnectionError):
            self.closed_count += 1
            self._reopen()
        except TimeoutError:  # presumably a long poll
            self.waiting_count += 1
            self._reopen()

    def _correlation_id(self) -> int:
        answer = self._wire.receive_frame()
        return int.from_bytes(answer[4:8], "big")

    def _reopen(self) -> None:
        self._wire.close()
        self._wire = Wire(self._port)

    def close(self) -> None:
        self._wire.close()
