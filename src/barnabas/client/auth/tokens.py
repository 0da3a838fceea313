"""The tokens of OAUTHBEARER: where a client gets them from."""

import asyncio
import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.url_reader import read_url

#: A token is used for this share of its lifetime.
_USED_SHARE = 0.8
#: As long as the last token is valid, a login waits for the next one no longer than this,
_PATIENCE_S = 1.0
#: and after a failure it is requested again no sooner than this.
_RETRY_S = 10.0
_UNSECURED_LIFETIME_S = 3_600


class NoToken(Exception):
    """A token cannot be had. The message does not quote a secret."""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Where tokens come from: a file, an authorization server, or without a URL this client itself."""

    url: str = ""  #: of a file, or of a server's token endpoint
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    unsecured_user: str = ""  #: for tokens without signature, which only a broker for tests accepts
    subject_claim: str = "sub"  #: names the user in a token


class _Token(NamedTuple):
    text: str = ""
    renew_s: float = 0.0  #: when to request the next one, on the wall clock
    expires_s: float = 0.0


class Tokens:
    """Gets tokens from a source, and keeps each until it is old. Copies in other processes begin without one.

    All connections share a request, which runs in a thread of its own: a server may take long.
    """

    def __init__(self, clock: Clock | None = None, patience_s: float = _PATIENCE_S) -> None:
        self._clock = clock or SystemClock()
        self._patience_s = patience_s
        self._token = _Token()
        self._request: Future[str] | None = None

    def __reduce__(self) -> tuple[type["Tokens"], tuple[()]]:
        return Tokens, ()

    async def current(self, source: TokenSource) -> str:
        """Return a token: a new one if the last is old, but as long as that is valid it serves if there is no other.

        :raises NoToken: If the source has none, and the last token has expired.
        """
        token, now_s = self._token, self._now_s()
        if now_s < min(token.renew_s, token.expires_s):
            return token.text
        if self._request is None or self._request.done():
            self._request = _in_thread(lambda: self._renew(source))
        is_valid = now_s < token.expires_s
        try:
            async with asyncio.timeout(self._patience_s if is_valid else None):
                return await asyncio.shield(asyncio.wrap_future(self._request))
        except (NoToken, TimeoutError):
            if not is_valid:
                raise
            return token.text

    def _renew(self, source: TokenSource) -> str:
        now_s = self._now_s()
        try:
            text = _new_token(source, now_s)
        except NoToken:
            self._token = self._token._replace(renew_s=now_s + _RETRY_S)
            raise
        expires_s = _expiry_s(text, now_s)
        self._token = _Token(text, now_s + (expires_s - now_s) * _USED_SHARE, expires_s)
        return text

    def _now_s(self) -> float:
        return self._clock.wall_ms() / 1_000


def _in_thread(function: Callable[[], str]) -> Future[str]:
    threads = ThreadPoolExecutor(1, "tokens")
    try:
        return threads.submit(function)
    finally:
        threads.shutdown(wait=False)


def _new_token(source: TokenSource, now_s: float) -> str:
    if source.url.startswith("file:"):
        path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(source.url).path))
        try:
            return path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise NoToken(f"{path}: {error.strerror}") from error
    if source.url:
        return _requested(source)
    claims = {"sub": source.unsecured_user, "iat": now_s, "exp": now_s + _UNSECURED_LIFETIME_S}
    if source.scope:
        claims["scope"] = source.scope
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _requested(source: TokenSource) -> str:
    """Return a token for the client's own credentials (RFC 6749, section 4.4)."""
    form = {"grant_type": "client_credentials"} | ({"scope": source.scope} if source.scope else {})
    quoted = ":".join(map(urllib.parse.quote_plus, (source.client_id, source.client_secret)))
    headers = {
        "Authorization": f"Basic {base64.b64encode(quoted.encode()).decode()}",
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    request = urllib.request.Request(source.url, urllib.parse.urlencode(form).encode(), headers)
    try:
        response = json.loads(read_url(request))
    except urllib.error.HTTPError as error:
        raise NoToken(
            f"{source.url} refused client {source.client_id}: {error.code} {error.reason}"
        ) from error
    except (OSError, ValueError) as error:
        raise NoToken(f"no token from {source.url}: {error}") from error
    token = response.get("access_token") if isinstance(response, dict) else None
    if not isinstance(token, str) or not token:
        raise NoToken(f"{source.url} sent no access_token")
    return token


def _expiry_s(token: str, now_s: float) -> float:
    """Return when a token expires; the present time if it does not say so."""
    try:
        return float(claims_of(token)["exp"])
    except (LookupError, ValueError, TypeError):
        return now_s


def claims_of(token: str) -> Mapping[str, Any]:
    """Return what a token says; nothing if it is not a JSON Web Token."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (LookupError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _encoded(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
