"""Bytes that no correct client sends: truncated, changed or oversized frames, unknown APIs, fragments, pipelining."""

import random
import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from barnabas import api
from barnabas.api import registry
from barnabas.api.registry import ApiSpec
from barnabas.wire.barnabas_messages import is_kafka_api
from barnabas.wire.codec import DecodeError, decode, encode
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.schema import Message
from differential import symbols
from differential.budget import EXAMPLES
from differential.identities import Identities
from differential.sides import Side, frame, parse_answer
from differential.values import messages
from differential.world import Pair

APIS = {key: spec for key, spec in registry.build(api).items() if is_kafka_api(key)}
#: Without client telemetry, which nothing receives here.
ADVERTISED_APIS = {key for key in APIS if key not in (71, 72)}

#: Read-only APIs, on which any bytes may be tried. (Metadata may create topics.)
READING = (1, 2, 10, 18, 23, 32, 46, 55, 60, 61, 75)

#: Barnabas sends this error before it closes the connection for an unknown API or version; Kafka only closes.
UNSUPPORTED = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)

#: Number of bodies tried for each API and version.
SAMPLES = 5

Outcome = str


def header(api_key: int, version: int, client_id: bytes | None = b"x", tags: bytes = b"") -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 77, length) + (client_id or b"") + tags


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def outcome(side: Side, sent: bytes) -> Outcome:
    """Whether a new connection's first bytes get a response."""
    answer = side.exchange_bytes(sent)
    return answer if isinstance(answer, str) else "answered"


def outcomes(pair: Pair, sent: bytes) -> tuple[Outcome, Outcome]:
    return outcome(pair.kafka, sent), outcome(pair.barnabas, sent)


def samples(spec: ApiSpec, version: int) -> Iterator[bytes]:
    """Return bodies of one API and version, always the same."""
    drawn: list[Message] = []

    @settings(
        max_examples=SAMPLES,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(spec, version))
    def draw(message: Message) -> None:
        drawn.append(message)

    draw()
    for message in drawn:
        yield bytes(encode(symbols.resolve(message, Identities("bytes-")), version))


def tags_of(spec: ApiSpec, version: int) -> bytes:
    return b"\0" if spec.is_flexible(version) else b""


def spoil(body: bytes, rng: random.Random) -> bytes:
    """Return the body with a few bytes changed."""
    changed = bytearray(body)
    for _ in range(rng.randint(1, 3) if body else 0):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    return bytes(changed)


def has_no_text(spec: ApiSpec, version: int, body: bytes) -> bool:
    """Whether a string in the body is not UTF-8: see the last test."""
    try:
        decode(spec.request, version, body)
    except DecodeError as malformed:
        return isinstance(malformed.__cause__, UnicodeDecodeError)
    return False


@pytest.mark.parametrize("api_key", READING, ids=lambda key: APIS[key].name)
def test_a_truncated_request_closes_the_connection(pair: Pair, api_key: int) -> None:
    spec = pair.apis[api_key]
    for version in (spec.versions.first, spec.versions.last):
        for body in samples(spec, version):
            for end in range(0, len(body), max(1, len(body) // 12)):
                sent = framed(header(api_key, version, tags=tags_of(spec, version)) + body[:end])
                kafka, barnabas = outcomes(pair, sent)
                assert kafka == barnabas, (version, end, body)


@pytest.mark.parametrize("api_key", READING, ids=lambda key: APIS[key].name)
def test_a_corrupted_request_is_answered_or_rejected_as_in_kafka(pair: Pair, api_key: int) -> None:
    spec = pair.apis[api_key]
    rng = random.Random(api_key)
    for _ in range(max(2, EXAMPLES // 10)):
        version = rng.randint(*spec.versions)
        for body in samples(spec, version):
            changed = spoil(body, rng)
            sent = framed(header(api_key, version, tags=tags_of(spec, version)) + changed)
            kafka, barnabas = outcomes(pair, sent)
            assert kafka == barnabas or has_no_text(spec, version, changed), (version, changed)


@pytest.mark.parametrize("api_key", READING, ids=lambda key: APIS[key].name)
def test_bytes_after_a_request_are_treated_as_in_kafka(pair: Pair, api_key: int) -> None:
    spec = pair.apis[api_key]
    for version in (spec.versions.first, spec.versions.last):
        for body in samples(spec, version):
            sent = framed(header(api_key, version, tags=tags_of(spec, version)) + body + b"\0\1\2")
            kafka, barnabas = outcomes(pair, sent)
            assert kafka == barnabas, (version, body)


@pytest.mark.parametrize("size_bytes", [-1, -(2**31), 2**31 - 1, 104_857_601])
def test_a_frame_with_an_invalid_size_closes_the_connection(pair: Pair, size_bytes: int) -> None:
    assert outcomes(pair, struct.pack(">i", size_bytes)) == ("closed", "closed")


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"\0\x12", b"\0\x12\0\0\0\0", header(18, 0)[:8], b"\0\x12\0\0\0\0\0\7\0\5ab"]
)
def test_a_frame_with_an_incomplete_header_closes_the_connection(pair: Pair, body: bytes) -> None:
    assert outcomes(pair, framed(body)) == ("closed", "closed")


@pytest.mark.parametrize("client_id", [None, b"", b"x" * 1000, "é".encode()])
@pytest.mark.parametrize("version", [0, 9], ids=["header 1", "header 2"])
def test_any_client_id_is_treated_as_in_kafka(pair: Pair, client_id: bytes | None, version: int) -> None:
    tags = b"\0" if version == 9 else b""
    body = bytes(encode(MetadataRequest(topics=[]), version))
    kafka, barnabas = outcomes(pair, framed(header(3, version, client_id, tags) + body))
    assert kafka == barnabas


@pytest.mark.parametrize(
    "tags",
    [
        b"\0",
        b"\1\x05\2ab",
        b"\2\x05\0\x06\1x",
        b"\1\0\5",
        b"\2\x06\0\x05\0",
        b"\2\x05\0\x05\0",
    ],
)
def test_unknown_tagged_fields_are_treated_as_in_kafka(pair: Pair, tags: bytes) -> None:
    body = bytes(encode(MetadataRequest(topics=[]), 9))
    in_header = outcomes(pair, framed(header(3, 9, tags=tags) + body))
    in_body = outcomes(pair, framed(header(3, 9, tags=b"\0") + body[:-1] + tags))
    assert in_header[0] == in_header[1]
    assert in_body[0] == in_body[1]


@pytest.mark.parametrize("api_key", [-1, 4, 7, 93, 999, 32_767])
def test_an_unknown_api_closes_the_connection(pair: Pair, api_key: int) -> None:
    _check_refused(pair, api_key, 0)


@pytest.mark.parametrize("api_key", [key for key in APIS if key != ApiVersionsRequest.API_KEY])
@pytest.mark.parametrize("beside", [-1, 1], ids=["below", "above"])
def test_an_unknown_version_closes_the_connection(pair: Pair, api_key: int, beside: int) -> None:
    first, last = APIS[api_key].versions
    _check_refused(pair, api_key, first - 1 if beside < 0 else last + 1)


def _check_refused(pair: Pair, api_key: int, version: int) -> None:
    sent = framed(header(api_key, version) + bytes(20))
    assert pair.kafka.exchange_bytes(sent) == "closed"
    assert pair.barnabas.exchange_bytes(sent) == struct.pack(">i", 77) + UNSUPPORTED


@pytest.mark.parametrize("version", [5, 99, 32_767])
def test_an_unknown_version_of_api_versions_is_answered_with_the_table(pair: Pair, version: int) -> None:
    def answer(side: Side) -> ApiVersionsResponse:
        data = side.exchange_bytes(framed(header(18, version) + bytes(5)))
        assert isinstance(data, bytes)
        response = parse_answer(data, ApiVersionsResponse, 0, 77)
        assert isinstance(response, ApiVersionsResponse)
        return response

    kafka, barnabas = answer(pair.kafka), answer(pair.barnabas)
    assert kafka.error_code == barnabas.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {named.api_key for named in kafka.api_keys} == {18}
    assert {named.api_key for named in barnabas.api_keys} == ADVERTISED_APIS


@pytest.mark.parametrize(
    "pieces", [lambda data: [data[n : n + 1] for n in range(len(data))], lambda data: [data]]
)
def test_fragmented_requests_are_answered_in_order(
    pair: Pair, pieces: Callable[[bytes], list[bytes]]
) -> None:
    sent = b"".join(frame(MetadataRequest(topics=[]), 9, number) for number in range(1, 20))
    for side in (pair.kafka, pair.barnabas):
        side.disconnect()
        for piece in pieces(sent):
            side.send(piece)
        answers = [struct.unpack_from(">i", side.receive())[0] for _ in range(1, 20)]
        assert answers == list(range(1, 20)), side.name
        side.disconnect()


@pytest.mark.parametrize(
    "sent",
    [
        header(3, 0, b"\xff\xfe") + bytes(4),
        header(3, 0) + b"\0\0\0\1\0\1\xff",
        header(3, 9, tags=b"\xff\xff\xff\xff\x0f") + b"\1\0\0\0\0",
    ],
    ids=["a client id that is not UTF-8", "a name that is not UTF-8", "a negative count of tagged fields"],
)
def test_kafka_accepts_bytes_that_barnabas_rejects_as_malformed(pair: Pair, sent: bytes) -> None:
    assert outcomes(pair, framed(sent)) == ("answered", "closed")
