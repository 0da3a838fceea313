"""Messages KeyUpdate of TLS 1.3 (RFC 8446, 4.6.3), which Python's ssl cannot send."""

import hashlib
import hmac
import ssl
import struct
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: The cipher suite TLS_AES_256_GCM_SHA384.
CIPHER = "TLS_AES_256_GCM_SHA384"
_KEY_BYTES, _NONCE_BYTES, _HASH_BYTES, _TAG_BYTES = 32, 12, 48, 16
_APPLICATION_DATA, _HANDSHAKE = 23, 22
#: KeyUpdate with update_requested: type, length, value.
_KEY_UPDATE = bytes((24, 0, 0, 1, 1))


def key_updates(key_log: Path, client: ssl.SSLObject, count: int) -> bytes:
    """Return records that a client sends directly after its handshake, each of which asks for another KeyUpdate.

    :param key_log: The client's `keylog_filename`.
    """
    cipher = client.cipher()
    assert cipher is not None
    assert cipher[0] == CIPHER
    [secret] = [
        bytes.fromhex(line.split()[2])
        for line in key_log.read_text().splitlines()
        if line.startswith("CLIENT_TRAFFIC_SECRET_0 ")
    ]
    records = []
    for _ in range(count):
        records.append(_record(secret))
        secret = _expanded(secret, b"traffic upd", _HASH_BYTES)
    return b"".join(records)


def _record(secret: bytes) -> bytes:
    """Return the first record that is sent with a key."""
    plaintext = _KEY_UPDATE + bytes((_HANDSHAKE,))
    head = struct.pack(">BHH", _APPLICATION_DATA, 0x0303, len(plaintext) + _TAG_BYTES)
    key, nonce = _expanded(secret, b"key", _KEY_BYTES), _expanded(secret, b"iv", _NONCE_BYTES)
    return head + AESGCM(key).encrypt(nonce, plaintext, head)


def _expanded(secret: bytes, label: bytes, size_bytes: int) -> bytes:
    """HKDF-Expand-Label (RFC 8446, 7.1) for sizes up to one hash."""
    full_label = b"tls13 " + label
    info = struct.pack(">HB", size_bytes, len(full_label)) + full_label + b"\0"
    return hmac.digest(secret, info + b"\x01", hashlib.sha384)[:size_bytes]
