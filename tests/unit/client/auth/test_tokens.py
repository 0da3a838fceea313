import asyncio
import json
import pickle
from pathlib import Path

import jwt
import pytest

from barnabas.base.clock import ManualClock
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.auth.tokens import NoToken, Tokens, TokenSource
from support.loop import on_loop
from support.oauth import CLIENT_ID, CLIENT_SECRET, authorization_server
from support.waiting import WAIT_S, reached


@on_loop
async def test_a_token_is_kept_until_it_is_old() -> None:
    clock = ManualClock()
    with authorization_server() as server:
        tokens, source = Tokens(clock), TokenSource(f"{server.url}/token", CLIENT_ID, CLIENT_SECRET, "kafka")
        server.expires_s = clock.wall_ms() / 1_000 + 100
        first = await tokens.current(source)
        clock.advance(79_000)
        assert await tokens.current(source) == first
        clock.advance(2_000)
        await tokens.current(source)
        assert (server.tokens_count, server.scope) == (2, "kafka")


@on_loop
async def test_a_token_serves_while_it_is_valid_and_there_is_no_other() -> None:
    clock = ManualClock()
    with authorization_server() as server:
        tokens, source = Tokens(clock), TokenSource(f"{server.url}/token", CLIENT_ID, CLIENT_SECRET)
        server.expires_s = clock.wall_ms() / 1_000 + 100
        first = await tokens.current(source)
    clock.advance(90_000)
    assert await tokens.current(source) == first
    clock.advance(10_000)
    with pytest.raises(NoToken):
        await tokens.current(source)


@on_loop
async def test_logins_at_the_same_time_share_a_request() -> None:
    with authorization_server() as server:
        tokens, source = Tokens(), TokenSource(f"{server.url}/token", CLIENT_ID, CLIENT_SECRET)
        server.may_answer.clear()
        logins = [asyncio.create_task(tokens.current(source)) for _ in range(3)]
        await reached(lambda: server.requests_count)
        logins[0].cancel()
        server.may_answer.set()
        first, *others = await asyncio.gather(*logins, return_exceptions=True)
        assert isinstance(first, asyncio.CancelledError)
        assert len(set(others)) == server.tokens_count == server.requests_count == 1


@on_loop
async def test_a_login_does_not_wait_long_for_a_new_token_while_the_last_one_is_valid() -> None:
    clock = ManualClock()
    with authorization_server() as server:
        tokens = Tokens(clock, patience_s=0.01)
        source = TokenSource(f"{server.url}/token", CLIENT_ID, CLIENT_SECRET)
        server.expires_s = clock.wall_ms() / 1_000 + 100
        first = await tokens.current(source)
        clock.advance(90_000)
        server.may_answer.clear()
        assert [await tokens.current(source) for _ in range(2)] == [first] * 2
        server.expires_s += 100
        server.may_answer.set()
        async with asyncio.timeout(WAIT_S):
            while await tokens.current(source) == first:
                pass
        assert server.requests_count == 2


@on_loop
async def test_after_a_failure_the_next_token_is_requested_a_little_later() -> None:
    clock = ManualClock()
    with authorization_server() as server:
        tokens, source = Tokens(clock), TokenSource(f"{server.url}/token", CLIENT_ID, CLIENT_SECRET)
        server.expires_s = clock.wall_ms() / 1_000 + 100
        first = await tokens.current(source)
        server.issues_tokens = False
        for advance_ms, requests_count in ((80_000, 2), (9_000, 2), (2_000, 3)):
            clock.advance(advance_ms)
            assert await tokens.current(source) == first
            assert server.requests_count == requests_count
        clock.advance(10_000)
        for requests_count in (4, 5):  # the token has expired
            with pytest.raises(NoToken, match="503"):
                await tokens.current(source)
            assert server.requests_count == requests_count


@on_loop
async def test_a_token_without_an_end_is_read_again_each_time(tmp_path: Path) -> None:
    path, tokens = tmp_path / "token", Tokens()
    source = TokenSource(path.as_uri())
    for content in ("one\n", "two"):
        path.write_text(content)
        assert await tokens.current(source) == content.strip()
    path.unlink()
    with pytest.raises(NoToken, match="No such file"):
        await tokens.current(source)


@on_loop
async def test_a_client_makes_tokens_without_signature_for_brokers_that_are_tested() -> None:
    token = await Tokens().current(TokenSource(unsecured_user="alice", scope="a b"))
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["sub"], claims["scope"], claims["exp"] - claims["iat"]) == ("alice", "a b", 3_600)


@on_loop
async def test_a_server_that_refuses_or_cannot_be_reached_is_named_without_the_secret() -> None:
    with authorization_server() as server:
        with pytest.raises(NoToken, match=f"{server.url}/token refused client {CLIENT_ID}: 401") as refused:
            await Tokens().current(TokenSource(f"{server.url}/token", CLIENT_ID, "wrong"))
        assert "wrong" not in str(refused.value)
        with pytest.raises(NoToken, match="sent no access_token"):
            await Tokens().current(TokenSource(f"{server.url}/empty", CLIENT_ID, "empty"))
    with pytest.raises(NoToken, match="no token from"):
        await Tokens().current(TokenSource(f"{server.url}/token", CLIENT_ID, CLIENT_SECRET))


def test_a_login_passes_through_json_and_other_processes() -> None:
    source = TokenSource("https://server/token", CLIENT_ID, CLIENT_SECRET)
    login = SaslLogin("OAUTHBEARER", CLIENT_ID, token_source=source)
    assert SaslLogin.from_plain(json.loads(json.dumps(login.to_plain()))) == login
    assert pickle.loads(pickle.dumps(login)) == login
    assert CLIENT_SECRET not in repr(login)


def test_only_oauthbearer_has_a_source_of_tokens() -> None:
    with pytest.raises(ValueError, match="OAUTHBEARER needs a source of tokens"):
        SaslLogin("OAUTHBEARER", "alice")
    with pytest.raises(ValueError, match="only OAUTHBEARER has one"):
        SaslLogin("PLAIN", "alice", "secret", token_source=TokenSource("file:///t"))
