"""The tokens of OAUTHBEARER: where a client gets them from."""

import asyncio
import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.url_reader import read_url

#: A token is used for this share of its lifetime.
_USED_SHARE = 0.8
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


class Tokens:
    """Gets tokens from a source, and keeps each until it is old. Copies in other processes begin without one."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._token = ""
        self._until_s = self._expires_s = 0.0  #: on the wall clock

    def __reduce__(self) -> tuple[type["Tokens"], tuple[()]]:
        return Tokens, ()

    async def current(self, source: TokenSource) -> str:
        """Return a token: a new one if the last is old, but as long as that is valid it serves if there is no other.

        :raises NoToken: If the source has none, and the last token has expired.
        """
        now_s = self._clock.wall_ms() / 1_000
        if now_s >= self._until_s:
            try:
                self._token = await asyncio.to_thread(_new_token, source, now_s)
            except NoToken:
                if now_s >= self._expires_s:
                    raise
            else:
                self._expires_s = _expiry_s(self._token, now_s)
                self._until_s = now_s + (self._expires_s - now_s) * _USED_SHARE
        return self._token


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
        answer = json.loads(read_url(request))
    except urllib.error.HTTPError as error:
        raise NoToken(
            f"{source.url} refused client {source.client_id}: {error.code} {error.reason}"
        ) from error
    except (OSError, ValueError) as error:
        raise NoToken(f"no token from {source.url}: {error}") from error
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token:
        raise NoToken(f"{source.url} sent no access_token")
    return token


def _expiry_s(token: str, now_s: float) -> float:
    """Return when a token expires; the present time if it does not say so."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (LookupError, ValueError, TypeError):
        return now_s


def _encoded(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
