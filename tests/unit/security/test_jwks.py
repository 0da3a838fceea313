import asyncio

import pytest

from barnabas.base.clock import ManualClock
from barnabas.config.oauth import OauthSettings
from barnabas.security.jwks import EARLY_REFRESH_MS, Jwks, UnknownKey, parse_keys
from support.loop import on_loop
from support.oauth import Signer, key_set
from support.waiting import reached

SETTINGS = OauthSettings("http://keys.example", retry_ms=1, retry_ms_max=2)


class Server:
    """Keys that change."""

    def __init__(self, *signers: Signer) -> None:
        self.signers = list(signers)
        self.is_down = False
        self.error: Exception = OSError("down")

    def fetch(self, url: str) -> bytes:
        if self.is_down:
            raise self.error
        return key_set(*self.signers)


@on_loop
async def test_an_unknown_key_is_looked_for_again_after_a_while() -> None:
    one, two, clock = Signer("one"), Signer("two"), ManualClock()
    server = Server(one)
    keys = Jwks(SETTINGS, clock.monotonic_ms, server.fetch)
    task = asyncio.ensure_future(keys.keep_fresh())
    await reached(lambda: keys.loads_count == 1)
    server.signers.append(two)
    with pytest.raises(UnknownKey):
        keys.key_of("two", "RS256")
    assert not keys._is_asked_for.is_set()  # the keys are new
    clock.advance(EARLY_REFRESH_MS)
    with pytest.raises(UnknownKey):
        keys.key_of("two", "RS256")
    await reached(lambda: keys.loads_count == 2)
    assert keys.key_of("two", "RS256") is not None
    task.cancel()
    await asyncio.wait({task})


@on_loop
async def test_the_last_keys_stay_valid_while_the_server_is_down() -> None:
    server = Server(Signer("one"))
    keys = Jwks(SETTINGS, ManualClock().monotonic_ms, server.fetch)
    server.is_down = True
    task = asyncio.ensure_future(keys.keep_fresh())
    await reached(lambda: keys.failures_count > 2)
    server.is_down = False
    await reached(lambda: keys.loads_count == 1)
    server.is_down, server.error = True, RuntimeError("unexpected")
    keys._is_asked_for.set()
    failures_count = keys.failures_count
    await reached(lambda: keys.failures_count > failures_count)
    assert keys.key_of("one", "RS256") is not None
    assert keys.statistics()["keys_count"] == 1
    task.cancel()
    await asyncio.wait({task})


@on_loop
async def test_a_key_may_be_for_one_algorithm_only() -> None:
    signer = Signer("one")
    entry = {**signer.public_entry, "alg": "RS512"}
    keys = Jwks(SETTINGS, ManualClock().monotonic_ms, lambda url: b'{"keys": [%s]}' % json_of(entry))
    await keys.load()
    with pytest.raises(UnknownKey, match="is for RS512, not for RS256"):
        keys.key_of("one", "RS256")


def json_of(entry: object) -> bytes:
    import json

    return json.dumps(entry).encode()


def test_keys_that_cannot_check_signatures_are_left_out() -> None:
    good = Signer("good").public_entry
    entries = [
        good,
        {**good, "kid": "enc", "use": "enc"},
        {"kty": "oct", "k": "AAAA", "kid": "shared"},
        {"kty": "new"},
        7,
    ]
    assert list(parse_keys(json_of({"keys": entries}))) == ["good"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Expecting value"),
        (b"nonsense", "Expecting value"),
        (b"[]", "must have a list of keys"),
        (b"{}", "must have a list of keys"),
        (b'{"keys": 1}', "must have a list of keys"),
    ],
)
def test_malformed_sets_are_refused(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_keys(content)
