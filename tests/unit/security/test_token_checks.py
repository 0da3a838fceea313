import dataclasses
import hmac
import json
import time
from hashlib import sha256
from typing import Any

import jwt
import pytest

from barnabas.config.oauth import OauthSettings
from barnabas.security.jwks import Jwks
from barnabas.security.sasl.oauthbearer import InvalidToken, Token
from barnabas.security.token_checks import TOKEN_CHARACTERS_MAX, token_check
from support.loop import on_loop
from support.oauth import AUDIENCE, ISSUER, Signer, key_set

SIGNER = Signer()
SETTINGS = OauthSettings("http://keys.example", audiences=(AUDIENCE, "other"), issuer=ISSUER)


async def checked(
    token: str, settings: OauthSettings = SETTINGS, *signers: Signer, wall_ms: int | None = None
) -> Token:
    keys = Jwks(settings, lambda: 0, lambda url: key_set(*(signers or (SIGNER,))))
    await keys.load()
    return token_check(settings, keys, lambda: int(time.time() * 1_000) if wall_ms is None else wall_ms)(
        token
    )


@on_loop
@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256"])
async def test_a_signed_token_names_the_user_and_ends_the_session(algorithm: str) -> None:
    signer = Signer(algorithm=algorithm)
    token = await checked(signer.token(), SETTINGS, signer)
    assert token.user == "alice"
    assert 3_500_000 < token.lifetime_ms <= 3_600_000


@on_loop
async def test_the_only_key_needs_no_id() -> None:
    assert (await checked(SIGNER.token(headers={}))).user == "alice"
    with pytest.raises(InvalidToken, match="has no key None"):
        await checked(SIGNER.token(headers={}), SETTINGS, SIGNER, Signer("two"))


@on_loop
@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": 1}, "has expired"),
        ({"exp": None}, "must have the claims exp and iat"),
        ({"iat": None}, "must have the claims exp and iat"),
        ({"exp": "tomorrow"}, "exp must be a time"),
        ({"exp": 1e300}, "exp must be a time"),
        ({"nbf": time.time() + 3_600}, r"not valid yet \(nbf\)"),
        ({"iat": time.time() + 3_600}, r"not valid yet \(iat\)"),
        ({"aud": "another"}, "the token is for another, not for kafka, other"),
        ({"aud": None}, "the token is for no audience, not for kafka, other"),
        ({"aud": 7}, "the token is for no audience"),
        ({"aud": [7, {}]}, "the token is for no audience"),
        ({"iss": "https://evil.example"}, "is from 'https://evil.example', not from https://issuer.example"),
        ({"iss": None}, "is from None"),
        ({"sub": None}, "the claim sub must name a user"),
        ({"sub": " "}, "the claim sub must name a user"),
    ],
)
async def test_a_token_is_refused_for_its_claims(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        await checked(SIGNER.token(**claims))


@on_loop
async def test_clocks_may_differ_a_little() -> None:
    now_s = time.time()
    assert (await checked(SIGNER.token(exp=now_s - 20))).lifetime_ms == 0
    assert (await checked(SIGNER.token(nbf=now_s + 20, iat=now_s + 20))).user == "alice"
    with pytest.raises(InvalidToken):
        await checked(SIGNER.token(exp=now_s - 40))


@on_loop
async def test_one_of_several_audiences_suffices() -> None:
    assert (await checked(SIGNER.token(aud=["x", "other"]))).user == "alice"
    assert (
        await checked(SIGNER.token(aud=None), dataclasses.replace(SETTINGS, audiences=()))
    ).user == "alice"


@on_loop
@pytest.mark.parametrize("scope", ["read write", ["write", "read"]])
async def test_scopes_are_a_text_or_a_list(scope: object) -> None:
    settings = dataclasses.replace(
        SETTINGS, scopes=("read", "write"), scope_claim="scp", subject_claim="email"
    )
    assert (await checked(SIGNER.token(scp=scope, email="a@b.c"), settings)).user == "a@b.c"
    with pytest.raises(InvalidToken, match="lacks the scopes read, write"):
        await checked(SIGNER.token(email="a@b.c"), settings)


@on_loop
async def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidToken, match="Signature verification failed"):
        await checked(Signer().token())
    with pytest.raises(InvalidToken, match="has no key 'two'"):
        await checked(Signer("two").token())


@on_loop
async def test_the_algorithm_cannot_be_exchanged() -> None:
    now_s = time.time()
    claims = {"sub": "mallory", "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 60}
    unsigned = jwt.encode(claims, None, "none", {"kid": "one"})
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    body = unsigned.split(".")[1].encode()
    signature = hmac.new(SIGNER.public_pem, head + b"." + body, sha256).digest()
    with_shared_secret = (head + b"." + body + b"." + jwt.utils.base64url_encode(signature)).decode()
    for token in (unsigned, with_shared_secret):
        with pytest.raises(InvalidToken, match=r"algorithm '(none|HS256)' is not accepted"):
            await checked(token)
    with pytest.raises(InvalidToken):
        await checked(Signer(algorithm="ES256").token())


@on_loop
@pytest.mark.parametrize("token", ["", "a", "a.b.c", "..", "e30.e30.", "x" * (TOKEN_CHARACTERS_MAX + 1)])
async def test_nonsense_is_refused(token: str) -> None:
    with pytest.raises(InvalidToken):
        await checked(token)


def test_without_keys_any_signature_is_accepted_but_not_any_claim() -> None:
    settings = OauthSettings("")
    check = token_check(settings, None, lambda: int(time.time() * 1_000))
    now_s = time.time()
    unsigned = jwt.encode({"sub": "alice", "iat": now_s, "exp": now_s + 60}, None, "none")
    assert check(unsigned).user == "alice"
    assert check(SIGNER.token()).user == "alice"
    with pytest.raises(InvalidToken, match="must not have a signature"):
        check(unsigned + "c2ln")
    with pytest.raises(InvalidToken, match="expired"):
        check(SIGNER.token(exp=1))
