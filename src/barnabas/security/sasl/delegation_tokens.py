"""Delegation tokens as SCRAM credentials of their owners (KIP-48)."""

import base64
from collections.abc import Callable, Mapping
from functools import lru_cache

from barnabas.base.clock import Clock
from barnabas.metadata.delegation_tokens import DelegationToken, token_hmac, token_key
from barnabas.metadata.scram import SALT_BYTES, ScramCredential
from barnabas.security.sasl.scram import TokenCredential
from barnabas.wire.acls import split_principal
from barnabas.wire.scram import ScramMechanism

_CREDENTIALS_COUNT_MAX = 1_000


class DelegationTokens:
    """The valid tokens of the cluster, by token id."""

    def __init__(
        self, secret_key: str | None, tokens: Callable[[], Mapping[str, DelegationToken]], clock: Clock
    ) -> None:
        """:param secret_key: `delegation.token.secret.key`; None if delegation tokens are disabled.
        :param tokens: Returns the present tokens of the metadata.
        """
        self._secret_key = secret_key
        self._tokens = tokens
        self._clock = clock
        self._scram_credential = lru_cache(_CREDENTIALS_COUNT_MAX)(_scram_credential)

    def credential_of(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        """Return the credential of a token; None if it is unknown or has expired."""
        if self._secret_key is None:
            return None
        password = token_hmac(self._secret_key, token_id)
        token, now_ms = self._tokens().get(token_key(password)), self._clock.wall_ms()
        if token is None or token.is_expired(now_ms):
            return None
        _, user = split_principal(token.owner)
        return TokenCredential(
            self._scram_credential(mechanism, password), user, max(token.expires_ms - now_ms, 1)
        )


def _scram_credential(mechanism: ScramMechanism, password: bytes) -> ScramCredential:
    """Return the credential, whose salt may be known because the password is random. Takes some milliseconds."""
    salt = bytes.fromhex(token_key(password))[:SALT_BYTES]
    return ScramCredential.of_password(mechanism, base64.b64encode(password).decode(), salt)
