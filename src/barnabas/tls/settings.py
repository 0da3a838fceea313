"""The TLS settings of a listener or a client, by Kafka's names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Self

#: Kafka's default of ssl.keystore.type. Java reads PKCS#12 stores of this type, too.
DEFAULT_STORE_TYPE = "JKS"

VERSIONS = ("TLSv1.2", "TLSv1.3")


class TlsError(ValueError):
    """A setting cannot be used. The message never quotes a password or a key."""

    def __init__(self, key: str, value: str, reason: str) -> None:
        """:param value: The value; empty if it is secret or not set."""
        super().__init__(f"{key}={value}: {reason}" if value else f"{key} {reason}")
        self.key = key
        self.value = value
        self.reason = reason


class ClientAuth(Enum):
    """ssl.client.auth: whether clients present a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Where a private key and its certificates are: in a file, or as PEM texts (KIP-651)."""

    type: str = DEFAULT_STORE_TYPE
    location: str = ""
    password: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    certificate_chain: str = ""


@dataclass(frozen=True, slots=True)
class TrustStore:
    """Where trusted certificates are: in a file, or as a PEM text."""

    type: str = DEFAULT_STORE_TYPE
    location: str = ""
    password: str = field(default="", repr=False)
    certificates: str = ""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How connections are encrypted. Without a trust store, the system's certificates are trusted."""

    keys: KeyStore | None = None
    trust: TrustStore | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    verifies_host_name: bool = True
    versions: tuple[str, ...] = VERSIONS
    cipher_suites: tuple[str, ...] = ()
    principal_rules: str = "DEFAULT"
    #: Whether the certificate in a changed key store may have another subject than the one in use.
    allows_dn_changes: bool = True
    #: Whether it may lack subject alternative names of the one in use.
    allows_san_changes: bool = True

    def to_plain(self) -> dict[str, Any]:
        """Return all values, secrets too, as what JSON has."""
        return asdict(self) | {"client_auth": self.client_auth.value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the settings of `to_plain`, from JSON or not."""
        return cls(
            KeyStore(**plain["keys"]) if plain["keys"] else None,
            TrustStore(**plain["trust"]) if plain["trust"] else None,
            ClientAuth(plain["client_auth"]),
            plain["verifies_host_name"],
            tuple(plain["versions"]),
            tuple(plain["cipher_suites"]),
            plain["principal_rules"],
            plain["allows_dn_changes"],
            plain["allows_san_changes"],
        )

    @property
    def allows_name_changes(self) -> bool:
        return self.allows_dn_changes and self.allows_san_changes

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the settings name."""
        stores = (self.keys, self.trust)
        return tuple(store.location for store in stores if store is not None and store.location)


def tls_settings(text: Callable[[str], str], items: Callable[[str], Sequence[str]]) -> TlsSettings:
    """Return the settings from values by Kafka's names.

    :param text: Returns the value of a name; empty if it is not set.
    :param items: Returns the elements of a list.
    :raises TlsError: When a value is invalid, or two contradict each other.
    """
    return TlsSettings(
        keys=_key_store(text),
        trust=_trust_store(text),
        client_auth=ClientAuth(text("ssl.client.auth") or "none"),
        verifies_host_name=bool(text("ssl.endpoint.identification.algorithm")),
        versions=_versions(items("ssl.enabled.protocols")),
        cipher_suites=tuple(items("ssl.cipher.suites")),
        principal_rules=text("ssl.principal.mapping.rules") or "DEFAULT",
    )


def _key_store(text: Callable[[str], str]) -> KeyStore | None:
    store = KeyStore(
        text("ssl.keystore.type").upper() or DEFAULT_STORE_TYPE,
        text("ssl.keystore.location"),
        text("ssl.keystore.password"),
        text("ssl.key.password"),
        text("ssl.keystore.key"),
        text("ssl.keystore.certificate.chain"),
    )
    if bool(store.key) != bool(store.certificate_chain):
        raise TlsError("ssl.keystore.key", "", "must be set together with ssl.keystore.certificate.chain")
    _check_source("ssl.keystore", store.type, store.location, store.key)
    return store if store.location or store.key else None


def _trust_store(text: Callable[[str], str]) -> TrustStore | None:
    store = TrustStore(
        text("ssl.truststore.type").upper() or DEFAULT_STORE_TYPE,
        text("ssl.truststore.location"),
        text("ssl.truststore.password"),
        text("ssl.truststore.certificates"),
    )
    _check_source("ssl.truststore", store.type, store.location, store.certificates)
    return store if store.location or store.certificates else None


def _check_source(prefix: str, store_type: str, location: str, inline: str) -> None:
    if store_type not in (DEFAULT_STORE_TYPE, "PKCS12", "PEM"):
        raise TlsError(f"{prefix}.type", store_type, f"must be PEM, PKCS12 or {DEFAULT_STORE_TYPE}")
    if inline and location:
        raise TlsError(f"{prefix}.location", location, "must not be set beside PEM texts")
    if inline and store_type != "PEM":
        raise TlsError(f"{prefix}.type", store_type, "must be PEM for PEM texts")


def _versions(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in VERSIONS:
            raise TlsError("ssl.enabled.protocols", name, f"must be among {', '.join(VERSIONS)}")
    return tuple(names) or VERSIONS
