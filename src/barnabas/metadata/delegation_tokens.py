"""Delegation tokens: credentials of limited lifetime, which act for their owner (KIP-48, KIP-373).

A token's password is its HMAC, which is computed from the token id and a secret of the brokers (`SECRET_KEY`). The
metadata has neither password nor secret, but the keys that verify a proof of the password.
"""

import base64
import hashlib
import hmac
import itertools
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from barnabas.base.resource_names import resource_name
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.decision import Decision, ResponseT
from barnabas.metadata.record_type import RecordType, Table
from barnabas.metadata.scram import (
    SALT_BYTES,
    Credentials,
    ScramCredential,
    credentials_from_plain,
    credentials_to_plain,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import ScramMechanism

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage

#: The secret from which HMACs are computed, the same on every broker; without it there are no tokens.
SECRET_KEY = "delegation.token.secret.key"

#: Limits of what one user can store; Apache Kafka has none.
TOKENS_PER_OWNER_MAX = 1_000
RENEWERS_BYTES_MAX = 16 << 10  #: of the names of a token's renewers together

_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token. Principals are texts such as `User:alice`; times are in ms since the epoch."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    expires_max_ms: int  #: end of its lifetime, with all renewals
    credentials: Credentials  #: of every mechanism, with the id as the user

    def is_expired(self, now_ms: int) -> bool:
        return self.expires_ms < now_ms

    def may_be_changed_by(self, principal: str) -> bool:
        """Whether the principal may renew and expire it."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principals: Set[str]) -> bool:
        """Whether it is one of these principals' own in DescribeDelegationToken."""
        return not principals.isdisjoint((self.owner, self.requester, *self.renewers))


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the HMAC of a token; in base64 it is the password."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_key(token_hmac: bytes) -> str:
    """Return the record key of a token, from which its HMAC cannot be computed."""
    return hashlib.sha256(token_hmac).hexdigest()


def token_credentials(token_hmac: bytes) -> Credentials:
    """Return the credentials of a token. The salts may be known, because the password is random.

    Takes some milliseconds.
    """
    password, salt = base64.b64encode(token_hmac).decode(), bytes.fromhex(token_key(token_hmac))[:SALT_BYTES]
    return {mechanism: ScramCredential.of_password(mechanism, password, salt) for mechanism in ScramMechanism}


def _to_plain(token: DelegationToken) -> Any:
    return {**asdict(token), "credentials": credentials_to_plain(token.credentials)}


def _from_plain(plain: Mapping[str, Any]) -> DelegationToken:
    renewers, credentials = tuple(plain["renewers"]), credentials_from_plain(plain["credentials"])
    return DelegationToken(**{**plain, "renewers": renewers, "credentials": credentials})


def _audit(
    _image: "MetadataImage", _key: str, before: DelegationToken | None, after: DelegationToken | None
) -> Iterator[Difference]:
    """Yield a difference of the owner, whose resource is named as in ACLs for its tokens."""
    token = after or before
    assert token is not None
    if before != after:
        yield Difference(
            resource_name("user", token.owner),
            f"delegation token {token.token_id}",
            _shown(before),
            _shown(after),
        )


def _shown(token: DelegationToken | None) -> dict[str, Any] | None:
    if token is None:
        return None
    return {
        "requester": token.requester,
        "renewers": list(token.renewers),
        "expires_ms": token.expires_ms,
    }


#: `token_key` -> token
DELEGATION_TOKENS: RecordType[DelegationToken] = RecordType(
    "delegation_tokens", _to_plain, _from_plain, _audit
)


def new_token(
    token_id: str,
    owner: str,
    requester: str,
    renewers: tuple[str, ...],
    now_ms: int,
    lifetimes: "Lifetimes",
    credentials: Credentials,
) -> DelegationToken:
    expires_max_ms = _sum(now_ms, lifetimes.max_ms)
    expires_ms = min(expires_max_ms, _sum(now_ms, lifetimes.renewal_ms))
    return DelegationToken(
        token_id, owner, requester, renewers, now_ms, expires_ms, expires_max_ms, credentials
    )


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long a token may be valid: at most, and until its next renewal."""

    max_ms: int
    renewal_ms: int


def check_limits(table: Table[DelegationToken], owner: str, renewers: tuple[str, ...], now_ms: int) -> None:
    """Check that a new token is within the limits.

    :raises KafkaError: POLICY_VIOLATION if its owner has too many valid ones, INVALID_REQUEST if the names of its
        renewers are too long.
    """
    renewers_bytes = sum(len(renewer.encode()) for renewer in renewers)
    if renewers_bytes > RENEWERS_BYTES_MAX:
        message = f"the names of {len(renewers)} renewers have {renewers_bytes} bytes, more than {RENEWERS_BYTES_MAX}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    valid_count = sum(other.owner == owner and not other.is_expired(now_ms) for other in table.values())
    if valid_count >= TOKENS_PER_OWNER_MAX:
        message = f"{owner} has {TOKENS_PER_OWNER_MAX} delegation tokens, which is the limit"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, message)


def decide_create(table: Table[DelegationToken], key: str, token: DelegationToken) -> Decision[None]:
    """Add a token.

    :raises KafkaError: See `check_limits`.
    """
    check_limits(table, token.owner, token.renewers, token.issued_ms)
    return _write(table, key, token, None)


def decide_renew(
    table: Table[DelegationToken], key: str, principal: str, period_ms: int, now_ms: int
) -> Decision[int]:
    """Renew a token for at most `period_ms`; return the time of its expiry.

    :raises KafkaError: DELEGATION_TOKEN_NOT_FOUND, _EXPIRED or _OWNER_MISMATCH.
    """
    token = _find(table, key)
    _check_not_expired(token, now_ms)
    _check_may_change(token, principal)
    return _expire_at(table, key, token, _sum(now_ms, period_ms))


def decide_expire(
    table: Table[DelegationToken], key: str, principal: str, period_ms: int, now_ms: int
) -> Decision[int]:
    """Let a token expire after `period_ms`, or remove it now if that is negative; return the time of its expiry.

    :raises KafkaError: DELEGATION_TOKEN_NOT_FOUND, _OWNER_MISMATCH or _EXPIRED.
    """
    token = _find(table, key)
    _check_may_change(token, principal)
    if period_ms < 0:
        return _write(table, key, None, now_ms)
    _check_not_expired(token, now_ms)
    return _expire_at(table, key, token, _sum(now_ms, period_ms))


def decide_remove_expired(table: Table[DelegationToken], now_ms: int, at_once_max: int) -> Decision[int]:
    """Remove at most `at_once_max` expired tokens; return how many. Call again for the others."""
    all_expired = (key for key, token in table.items() if token.is_expired(now_ms))
    expired = list(itertools.islice(all_expired, at_once_max))
    changes = tuple(DELEGATION_TOKENS.remove(key) for key in expired)
    return Decision(
        len(expired), changes, {DELEGATION_TOKENS.key(key): table.revision(key) for key in expired}
    )


def _find(table: Table[DelegationToken], key: str) -> DelegationToken:
    token = table.get(key)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no delegation token has this HMAC")
    return token


def _check_not_expired(token: DelegationToken, now_ms: int) -> None:
    if token.is_expired(now_ms):
        message = f"delegation token {token.token_id} expired at {token.expires_ms}"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, message)


def _check_may_change(token: DelegationToken, principal: str) -> None:
    if not token.may_be_changed_by(principal):
        message = f"{principal} is neither the owner of delegation token {token.token_id} nor a renewer"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, message)


def _expire_at(
    table: Table[DelegationToken], key: str, token: DelegationToken, expires_ms: int
) -> Decision[int]:
    token = replace(token, expires_ms=min(expires_ms, token.expires_max_ms))
    return _write(table, key, token, token.expires_ms)


def _write(
    table: Table[DelegationToken], key: str, token: DelegationToken | None, result: ResponseT
) -> Decision[ResponseT]:
    change = DELEGATION_TOKENS.remove(key) if token is None else DELEGATION_TOKENS.put(key, token)
    return Decision(result, (change,), {DELEGATION_TOKENS.key(key): table.revision(key)})


def _sum(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _INT64_MAX)
