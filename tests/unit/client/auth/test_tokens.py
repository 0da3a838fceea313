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
