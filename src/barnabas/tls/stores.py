"""Reads keys and certificates: PEM, and PKCS#12 stores as Java's keytool makes them."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.tls.settings import KeyStore, TlsError, TrustStore

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PEM_LABEL = re.compile(r"\s*(-----(?:BEGIN|END) [A-Z0-9 ]+-----)\s*")
_PEM_BEGIN = b"-----BEGIN"
_JKS_BEGIN = b"\xfe\xed\xfe\xed"
_EXTRA = "needs the package cryptography: pip install '.[security]' in a checkout of Barnabas"


class KeyMaterial(NamedTuple):
    """A private key and its certificate chain as PEM; the password is that of the key, if it is encrypted."""

    pem: bytes
    password: str

    def __repr__(self) -> str:
        return "KeyMaterial(...)"


def read_keys(store: KeyStore) -> KeyMaterial:
    """Return the private key of a store with its certificates.

    :raises TlsError: When the store cannot be read.
    """
    if store.key:
        return KeyMaterial(with_lines(f"{store.key}\n{store.certificate_chain}").encode(), store.key_password)
    content = _read("ssl.keystore.location", store.location)
    if _is_pem("ssl.keystore", store.type, store.location, content):
        return KeyMaterial(content, store.key_password)
    found = _open_pkcs12("ssl.keystore", store.location, content, store.password)
    if found.key is None or found.cert is None:
        raise TlsError(
            "ssl.keystore.location", store.location, "must have a private key with its certificate"
        )
    return KeyMaterial(_to_pem(found), "")


def own_certificate(store: KeyStore) -> str:
    """Return the certificate of a key store's key as PEM, without the key and the issuers.

    :raises TlsError: When the store cannot be read.
    """
    return next(iter(_CERTIFICATE.findall(read_keys(store).pem.decode("ascii", "ignore"))), "")


def read_trusted(store: TrustStore) -> str:
    """Return the certificates of a trust store as PEM.

    Of a PKCS#12 store with a private key, only the key's own certificate is trusted, as in Java.

    :raises TlsError: When the store cannot be read.
    """
    if store.certificates:
        return with_lines(store.certificates).encode("ascii", "ignore").decode()
    content = _read("ssl.truststore.location", store.location)
    if not _is_pem("ssl.truststore", store.type, store.location, content):
        opened = _open_pkcs12("ssl.truststore", store.location, content, store.password)
        own, others = opened.cert, opened.additional_certs
        content = _certificates([own] if opened.key is not None else [own, *others])
    return content.decode("ascii", "ignore")


def with_lines(text: str) -> str:
    """Return PEM texts with line ends, where a setting or an environment variable has only blanks (KIP-651)."""
    return _PEM_LABEL.sub(r"\n\1\n", text)


def _read(key: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise TlsError(key, location, f"cannot be read: {error.strerror}") from error


def _is_pem(prefix: str, store_type: str, location: str, content: bytes) -> bool:
    """Whether a store is PEM; one of the default type is what it contains."""
    is_pem = _PEM_BEGIN in content[:4096]
    if store_type == "PEM" and not is_pem:
        raise TlsError(f"{prefix}.location", location, "must be a PEM file")
    if content.startswith(_JKS_BEGIN):
        reason = "has Java's old format; convert it with keytool -importkeystore -deststoretype pkcs12"
        raise TlsError(f"{prefix}.location", location, reason)
    return is_pem and store_type != "PKCS12"


def _open_pkcs12(prefix: str, location: str, content: bytes, password: str) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise TlsError(f"{prefix}.location", location, f"a PKCS#12 store {_EXTRA}; or use PEM") from None
    try:
        return pkcs12.load_pkcs12(content, password.encode())
    except ValueError as error:
        reason = f"must be a PKCS#12 store that {prefix}.password opens"
        raise TlsError(f"{prefix}.location", location, reason) from error


def _to_pem(store: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    parts = []
    if store.key is not None:
        parts.append(store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    parts.append(_certificates([store.cert, *store.additional_certs]))
    return b"".join(parts)


def _certificates(certificates: Sequence[Any]) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in certificates if each is not None)


@contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Provide secret bytes as a file, for functions that take nothing else; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("barnabas-tls")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:  # only its owner may read it
            file.write(content)
            file.flush()
            yield file.name
