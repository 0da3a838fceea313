"""SCRAM messages, keys and proofs (RFC 5802, RFC 7677). No state, no IO.

Like Apache Kafka, encodes names and passwords in UTF-8 without SASLprep.
"""

import base64
import binascii
import enum
import hashlib
import hmac
import re
from typing import NamedTuple


class ScramMechanism(enum.IntEnum):
    """The mechanisms, numbered as in DescribeUserScramCredentials and AlterUserScramCredentials."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def title(self) -> str:
        """The name in SaslHandshake: SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The hash function by its name in `hashlib`."""
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()

    @property
    def key_bytes(self) -> int:
        """Size of its keys and proofs."""
        return hashlib.new(self.hash_name).digest_size


MECHANISMS_BY_TITLE = {mechanism.title: mechanism for mechanism in ScramMechanism}

_NAME = "(?:[^=,\x00]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = "[A-Za-z0-9+/]+={0,2}"
_EXTENSIONS = "(?:,[A-Za-z]+=[^,\x00]+)*"
_CLIENT_FIRST = re.compile(
    f"n,(?:a=(?P<authorization>{_NAME}))?,"
    f"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    f"r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[1-9][0-9]{{0,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    f"(?P<bare>c={_BASE64},r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(f"(?:e=(?P<error>[^,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")

#: The GS2 header of a client without channel binding or authorization id, and its form in the final message.
GS2_HEADER = "n,,"
_CHANNEL = base64.b64encode(GS2_HEADER.encode()).decode()


class BadScramMessage(ValueError):
    """The bytes are not the expected message."""


class ClientFirst(NamedTuple):
    """The first message of the client."""

    name: str
    authorization_id: str  #: empty if the client acts for itself
    nonce: str
    extensions: str
    bare: str  #: the part that is signed

    @property
    def names_token(self) -> bool:
        """Whether the name is that of a delegation token (KIP-48)."""
        return ",tokenauth=true," in f"{self.extensions},".lower()


class ServerFirst(NamedTuple):
    """Nonce, salt and iterations for the proof."""

    nonce: str
    salt: bytes
    iterations: int

    def __str__(self) -> str:
        return f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={self.iterations}"


class ClientFinal(NamedTuple):
    """The client's proof that it knows the password."""

    nonce: str
    proof: bytes
    bare: str  #: the part that is signed


class ServerFinal(NamedTuple):
    """The server's proof that it knows the password, or an error."""

    signature: bytes
    error: str | None


def client_first(name: str, nonce: str, *, names_token: bool = False) -> str:
    """Return a client's first message without `GS2_HEADER`, which is sent before it."""
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    return f"n={escaped},r={nonce}{',tokenauth=true' if names_token else ''}"


def client_final_bare(nonce: str) -> str:
    """Return a client's final message without its proof."""
    return f"c={_CHANNEL},r={nonce}"


def client_final(bare: str, proof: bytes) -> bytes:
    """Return a client's final message."""
    return f"{bare},p={base64.b64encode(proof).decode()}".encode()


def server_final(signature: bytes) -> bytes:
    """Return a server's final message."""
    return b"v=" + base64.b64encode(signature)


def parse_client_first(message: bytes) -> ClientFirst:
    """Parse a client's first message; channel binding and mandatory extensions are not supported.

    :raises BadScramMessage: When it is malformed.
    """
    match = _match(_CLIENT_FIRST, message, "first message of a client")
    authorization = _unescape(match["authorization"] or "")
    return ClientFirst(
        _unescape(match["name"]), authorization, match["nonce"], match["extensions"], match["bare"]
    )


def parse_server_first(message: bytes) -> ServerFirst:
    """Parse a server's first message.

    :raises BadScramMessage: When it is malformed.
    """
    match = _match(_SERVER_FIRST, message, "first message of a server")
    return ServerFirst(match["nonce"], _decode(match["salt"]), int(match["iterations"]))


def parse_client_final(message: bytes) -> ClientFinal:
    """Parse a client's final message.

    :raises BadScramMessage: When it is malformed.
    """
    match = _match(_CLIENT_FINAL, message, "last message of a client")
    return ClientFinal(match["nonce"], _decode(match["proof"]), match["bare"])


def parse_server_final(message: bytes) -> ServerFinal:
    """Parse a server's final message.

    :raises BadScramMessage: When it is malformed.
    """
    match = _match(_SERVER_FINAL, message, "last message of a server")
    return ServerFinal(_decode(match["signature"] or ""), match["error"])


def _match(pattern: re.Pattern[str], message: bytes, what: str) -> re.Match[str]:
    try:
        match = pattern.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        text = f"not the {what} in SCRAM"
        raise BadScramMessage(text)
    return match


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        message = f"not base64: {error}"
        raise BadScramMessage(message) from error


def _unescape(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


# Keys and proofs


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, from which all keys are derived; slow on purpose."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a client proves to have."""
    return _hmac(mechanism, salted, b"Client Key")


def stored_key(mechanism: ScramMechanism, key: bytes) -> bytes:
    """Return the server's form of the client key: it verifies a proof, but cannot make one."""
    return hashlib.new(mechanism.hash_name, key).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a server proves to have."""
    return _hmac(mechanism, salted, b"Server Key")


def signature(mechanism: ScramMechanism, key: bytes, *messages: str) -> bytes:
    """Return the HMAC with `key` over the three messages of the exchange."""
    return _hmac(mechanism, key, ",".join(messages).encode())


def exclusive_or(left: bytes, right: bytes) -> bytes:
    """Hide a client key by its signature, or recover it."""
    assert len(left) == len(right), (len(left), len(right))
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _hmac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)
