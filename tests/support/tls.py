"""Brokers whose listeners use TLS, and their clients."""

import itertools
import os
import socket
import ssl
from pathlib import Path

from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.blocking import BlockingClient
from barnabas.security.sasl.authenticator import LoginOutcome
from barnabas.testing import EmbeddedBroker
from barnabas.tls.settings import KeyStore, TlsSettings, TrustStore
from support.certificates import Authority, Issued
from support.sasl import MODULE

AUTHORITY = Authority()
TRUST = TrustStore("PEM", certificates=AUTHORITY.pem)
TLS = TlsSettings(trust=TRUST)
_changes = itertools.count(1)


def write_keystore(issued: Issued, path: Path) -> Path:
    """Write a keystore with a modification time of its own."""
    issued.write_pem(path)
    os.utime(path, (next(_changes),) * 2)
    return path


def with_keys(issued: Issued) -> TlsSettings:
    keys = KeyStore("PEM", key=issued.key_pem(), certificate_chain=issued.certificate_pem)
    return TlsSettings(keys, TRUST)


def settings_of(keystore: Path, **others: str) -> dict[str, str]:
    """Return the settings of a broker that has listeners of all security protocols; `_` stands for a dot."""
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,LOGIN://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,LOGIN:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{MODULE} required user_alice="alice-secret";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        **{name.replace("_", "."): value for name, value in others.items()},
    }


REQUIRED = {
    "ssl_client_auth": "required",
    "ssl_truststore_type": "PEM",
    "ssl_truststore_certificates": AUTHORITY.pem,
}


def port_of(kafka: EmbeddedBroker, listener: str) -> int:
    return next(port for name, _, port in kafka.server.addresses if name == listener)


def client_of(
    kafka: EmbeddedBroker,
    listener: str = "SSL",
    tls: TlsSettings | None = TLS,
    login: SaslLogin | None = None,
) -> BlockingClient:
    return BlockingClient(f"127.0.0.1:{port_of(kafka, listener)}", tls=tls, login=login)


def connected(
    kafka: EmbeddedBroker, context: ssl.SSLContext | None = None, name: str = "localhost"
) -> ssl.SSLSocket:
    """Connect with Python's own client."""
    context = context or ssl.create_default_context(cadata=AUTHORITY.pem)
    plain = socket.create_connection(("127.0.0.1", port_of(kafka, "SSL")), 10)
    return context.wrap_socket(plain, server_hostname=name)


def failed_handshakes_count(kafka: EmbeddedBroker) -> int:
    return kafka.server.parts.listeners.logins["SSL", "TLS", LoginOutcome.FAILED]
