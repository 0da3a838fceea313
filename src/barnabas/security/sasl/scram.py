"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both sides prove that they know the password.

A client may log in with a delegation token instead of a user (KIP-48): its id is the name, and its HMAC the password.

For an unknown user or token the exchange continues with a stand-in credential (`stand_ins`) and fails at the proof,
with the same message after the same work, so that clients cannot find out which users exist.
"""

import hmac
import random
from collections.abc import Callable
from typing import NamedTuple

from barnabas.metadata.scram import ScramCredential
from barnabas.security.sasl.mechanism import BadCredentials, LoginRefused
from barnabas.wire import scram
from barnabas.wire.scram import ClientFirst, ScramMechanism, ServerFirst

_NONCE_BYTES = 20

#: user name -> credential; None for an unknown user
CredentialOf = Callable[[str], ScramCredential | None]


class TokenCredential(NamedTuple):
    """The credential of a delegation token."""

    credential: ScramCredential
    user: str  #: its owner
    lifetime_ms: int  #: from now on


#: token id -> credential; None for an unknown or expired token
TokenCredentialOf = Callable[[str], TokenCredential | None]


class ScramServer:
    """The broker's side of SCRAM."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: CredentialOf,
        token_credential_of: TokenCredentialOf,
        stand_in_for: Callable[[str], ScramCredential],
        rng: random.Random,
    ) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_credential_of = token_credential_of
        self._stand_in_for = stand_in_for
        self._rng = rng
        self._first: tuple[ClientFirst, ServerFirst] | None = None
        self._token: TokenCredential | None = None
        self.user: str | None = None
        self.claimed_user: str | None = None
        self.lifetime_ms: int | None = None
        self.is_delegation_token = False

    def evaluate(self, token: bytes) -> bytes:
        """Answer the first message, then check the proof; see `ServerMechanism`."""
        try:
            return self._begin(token) if self._first is None else self._finish(token, *self._first)
        except scram.BadScramMessage as error:
            raise BadCredentials(str(error)) from error

    def _begin(self, token: bytes) -> bytes:
        client = scram.parse_client_first(token)
        self.claimed_user = client.name
        if client.authorization_id not in ("", client.name):
            message = "Client requested an authorization id that is different from username"
            raise LoginRefused(f"Authentication failed: {message}")
        if client.names_token:
            self._token = self._token_credential_of(client.name)
            credential = self._token and self._token.credential
        else:
            credential = self._credential_of(client.name)
        stand_in = self._stand_in_for(client.name)  # derived for existing users too, because it takes time
        self._credential = credential or stand_in
        self._is_known = credential is not None
        nonce = client.nonce + self._rng.randbytes(_NONCE_BYTES).hex()
        server = ServerFirst(nonce, self._credential.salt, self._credential.iterations)
        self._first = client, server
        return str(server).encode()

    def _finish(self, token: bytes, client: ClientFirst, server: ServerFirst) -> bytes:
        final = scram.parse_client_final(token)
        if final.nonce != server.nonce:
            message = (
                "the final nonce differs from that of the first messages (librdkafka before 2.6.1 does that)"
            )
            raise BadCredentials(message)
        messages = (client.bare, str(server), final.bare)
        credential = self._credential
        is_valid = self._is_known
        if self._token is not None:  # it may have been removed, or have expired, since the first message
            self._token = self._token_credential_of(client.name)
            is_valid = self._token is not None
        if not self._proves(credential, final.proof, messages) or not is_valid:
            kind = "delegation token" if client.names_token else "user"
            raise BadCredentials(f"no valid proof for {kind} '{client.name}'")
        if self._token is None:
            self.user = client.name
        else:
            self.is_delegation_token = True
            self.user, self.lifetime_ms = self._token.user, self._token.lifetime_ms
        return scram.server_final(scram.signature(self._mechanism, credential.server_key, *messages))

    def _proves(self, credential: ScramCredential, proof: bytes, messages: tuple[str, str, str]) -> bool:
        if len(proof) != self._mechanism.key_bytes:
            return False
        client_signature = scram.signature(self._mechanism, credential.stored_key, *messages)
        key = scram.exclusive_or(proof, client_signature)
        return hmac.compare_digest(scram.stored_key(self._mechanism, key), credential.stored_key)
