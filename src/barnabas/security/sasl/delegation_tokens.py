"""Delegation tokens as SCRAM credentials of their owners (KIP-48)."""

from collections.abc import Callable, Mapping

from barnabas.base.clock import Clock
from barnabas.metadata.delegation_tokens import DelegationToken, token_hmac, token_key
from barnabas.security.sasl.scram import TokenCredential
from barnabas.wire.acls import split_principal
from barnabas.wire.scram import ScramMechanism


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

    def credential_of(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        """Return the credential of a token; None if it is unknown or has expired."""
        if self._secret_key is None:
            return None
        key = token_key(token_hmac(self._secret_key, token_id))
        token, now_ms = self._tokens().get(key), self._clock.wall_ms()
        if token is None or token.is_expired(now_ms):
            return None
        _, user = split_principal(token.owner)
        return TokenCredential(token.credentials[mechanism], user, max(token.expires_ms - now_ms, 1))
