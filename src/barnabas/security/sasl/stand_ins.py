"""Stand-in SCRAM credentials of unknown users, which a client cannot distinguish from real ones.

A stand-in has the iterations and the salt format of some user's credential. It is derived from the user's name,
the cluster's secret and the existing formats, so it stays the same after a restart.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.metadata.scram import ITERATIONS_MIN, SALT_BYTES, Credentials, ScramCredential
from barnabas.wire.scram import ScramMechanism

_SHAPES_MAX = 16
#: Apache Kafka's tools make salts of random numbers of this size, written in base 36.
_KAFKA_SALT_BITS = 130
_KAFKA_SALT_LENGTHS = (24, 25, 26)
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"


class Shape(NamedTuple):
    """The properties of a credential that are visible to a client, except for the salt's value."""

    iterations: int
    salt_bytes: int | None  #: None for a salt as Apache Kafka's tools write it


DEFAULT_SHAPE = Shape(ITERATIONS_MIN, SALT_BYTES)


class StandIns:
    """Derives stand-ins. `credentials_of_users` returns the current credentials of the cluster's users."""

    def __init__(self, secret: bytes, credentials_of_users: Callable[[], Mapping[str, Credentials]]) -> None:
        self._secret = secret
        self._credentials_of_users = credentials_of_users
        self._seen: Mapping[str, Credentials] | None = None
        self._shapes: dict[ScramMechanism, list[Shape]] = {}

    def of(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """Return the stand-in for a user; no proof fits its keys."""
        shapes = self._shapes_of(mechanism)
        shape = max(shapes, key=lambda each: self._derive(mechanism, user, repr(tuple(each)), 32))
        key = bytes(mechanism.key_bytes)
        return ScramCredential(self._salt(mechanism, user, shape.salt_bytes), key, key, shape.iterations)

    def _shapes_of(self, mechanism: ScramMechanism) -> list[Shape]:
        """Return the most frequent formats among users; cached until credentials change."""
        users = self._credentials_of_users()
        if users is not self._seen:
            self._shapes, self._seen = {}, users
        if mechanism not in self._shapes:
            counts = Counter(
                _shape(credentials[mechanism]) for credentials in users.values() if mechanism in credentials
            )
            shapes = [shape for shape, _ in counts.most_common(_SHAPES_MAX)]
            self._shapes[mechanism] = shapes or [DEFAULT_SHAPE]
        return self._shapes[mechanism]

    def _salt(self, mechanism: ScramMechanism, user: str, salt_bytes: int | None) -> bytes:
        if salt_bytes is not None:
            return self._derive(mechanism, user, "salt", salt_bytes)
        number = int.from_bytes(self._derive(mechanism, user, "salt", 32), "big")
        return _base_36(number >> 256 - _KAFKA_SALT_BITS)

    def _derive(self, mechanism: ScramMechanism, user: str, purpose: str, size_bytes: int) -> bytes:
        message = f"{mechanism.title}\0{purpose}\0{user}".encode()
        key = hmac.digest(self._secret, message, "sha256")
        return hashlib.shake_256(key).digest(size_bytes)


def _shape(credential: ScramCredential) -> Shape:
    salt = credential.salt
    is_kafkas = len(salt) in _KAFKA_SALT_LENGTHS and not salt.strip(_DIGITS)
    return Shape(credential.iterations, None if is_kafkas else len(salt))


def _base_36(number: int) -> bytes:
    digits = bytearray()
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
