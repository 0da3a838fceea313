"""The public keys of an authorization server (JSON Web Key Set, RFC 7517), from a file or a URL."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.base.url_reader import read_url
from barnabas.config.oauth import OauthSettings
from barnabas.telemetry.logs import get_logger

#: A token with an unknown key asks for the keys again, at most this often.
EARLY_REFRESH_MS = 10_000

_log = get_logger("barnabas.security")


class UnknownKey(Exception):
    """No key for a token."""


class _Key(NamedTuple):
    public_key: Any
    algorithm: str | None  #: the only one that it is for


class Jwks:
    """Keys by id. `keep_fresh` loads them, and again before they are too old or when an unknown one is named.

    While the server cannot be reached, the last keys stay valid.
    """

    def __init__(
        self, settings: OauthSettings, now_ms: Callable[[], int], fetch: Callable[[str], bytes] | None = None
    ) -> None:
        """:param now_ms: The monotonic clock.
        :param fetch: Returns the content of a URL; blocks. Raises OSError.
        """
        self._settings = settings
        self._now_ms = now_ms
        self._fetch = fetch or read_url
        self._keys: Mapping[str, _Key] = {}
        self._is_asked_for = asyncio.Event()
        self._loaded_ms: int | None = None
        self.loads_count = 0
        self.failures_count = 0

    def key_of(self, key_id: object, algorithm: str) -> Any:
        """Return the public key that a token names, or the only one if it names none.

        :raises UnknownKey: If the server has no such key. The keys are loaded again soon.
        """
        keys = list(self._keys.values()) if key_id is None else [self._keys.get(str(key_id))]
        key = keys[0] if len(keys) == 1 else None
        if key is None:
            if self._loaded_ms is None or self._now_ms() - self._loaded_ms >= EARLY_REFRESH_MS:
                self._is_asked_for.set()
            raise UnknownKey(f"the authorization server has no key {key_id!r}")
        if key.algorithm not in (None, algorithm):
            raise UnknownKey(f"key {key_id!r} is for {key.algorithm}, not for {algorithm}")
        return key.public_key

    async def keep_fresh(self) -> None:
        """Load the keys until cancelled."""
        backoff_ms = self._settings.retry_ms
        while True:
            self._is_asked_for.clear()
            try:
                await self.load()
            except Exception as error:  # whatever the server sends, the next answer may be better
                self.failures_count += 1
                _log.warning(
                    "cannot load the keys of an authorization server",
                    url=self._settings.jwks_url,
                    why=str(error),
                )
                await asyncio.sleep(backoff_ms / 1_000)
                backoff_ms = min(backoff_ms * 2, self._settings.retry_ms_max)
                continue
            backoff_ms = self._settings.retry_ms
            try:
                async with asyncio.timeout(self._settings.refresh_ms / 1_000):
                    await self._is_asked_for.wait()
            except TimeoutError:
                pass

    async def load(self) -> None:
        """Load the keys once.

        :raises OSError: If they cannot be read.
        :raises ValueError: If they are malformed.
        """
        content = await asyncio.to_thread(self._fetch, self._settings.jwks_url)
        self._keys = parse_keys(content)
        self._loaded_ms = self._now_ms()
        self.loads_count += 1

    def statistics(self) -> dict[str, int]:
        return {
            "keys_count": len(self._keys),
            "loads_count": self.loads_count,
            "failures_count": self.failures_count,
        }


def parse_keys(content: bytes) -> dict[str, _Key]:
    """Return the public keys of a set by id. Keys of unknown types, and those for encryption, are left out.

    :raises ValueError: If it is not a set of keys.
    """
    import jwt

    document = json.loads(content)
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ValueError("a JSON Web Key Set must have a list of keys")
    found = {}
    for entry in document["keys"]:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
            continue
        try:
            found[str(entry.get("kid"))] = _Key(jwt.PyJWK(entry).key, entry.get("alg"))
        except Exception:  # PyJWT raises errors of several kinds for what it does not know
            continue
    return found
