"""Security modes of clients, and brokers that have a listener for each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from interop.brokers import Broker, consecutive_ports, shifted
from interop.reference import write_properties
from interop.sasl import client_properties
from interop.targets import START_ONE
from tests.support.certificates import Authority

from bench import load
from bench.measures import Size

MECHANISM, USER, PASSWORD = "SCRAM-SHA-512", "alice", "alice-secret"

#: The suites of TLS 1.3 and 1.2 that both brokers use: the cipher is always AES-256-GCM.
SUITES = {
    "1.3": ("TLS_AES_256_GCM_SHA384",),
    "1.2": ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
}


@dataclass(frozen=True)
class SecurityMode:
    text: str
    listener: str
    protocol: str
    version: str = "1.3"
    has_certificate: bool = False

    @property
    def is_encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def logs_in(self) -> bool:
        return self.protocol.startswith("SASL")


PLAINTEXT = SecurityMode("plaintext", "PLAINTEXT", "PLAINTEXT")
SCRAM = SecurityMode(MECHANISM, "LOGIN", "SASL_PLAINTEXT")
TLS = SecurityMode("TLS 1.3", "ENCRYPTED", "SSL")
TLS_1_2 = SecurityMode("TLS 1.2", "ENCRYPTED", "SSL", version="1.2")
RSA = SecurityMode("TLS 1.3, RSA", "RSA", "SSL")
MUTUAL = SecurityMode("TLS 1.3 with client certificates", "MUTUAL", "SSL", has_certificate=True)
TLS_SCRAM = SecurityMode(f"TLS 1.3 and {MECHANISM}", "SECURED", "SASL_SSL")

#: Listeners and their security protocols; their ports count up from that of PLAINTEXT.
LISTENERS = {mode.listener: mode.protocol for mode in (PLAINTEXT, SCRAM, TLS, RSA, MUTUAL, TLS_SCRAM)}


def address(broker: Broker, mode: SecurityMode) -> str:
    return shifted(broker.bootstrap, list(LISTENERS).index(mode.listener))


class Site:
    """A directory with the keys and certificates of brokers and clients."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        authority = Authority()
        authority.write_pem(self._file("authority"))
        authority.issue().write_pem(self._file("broker"))
        rsa_key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        authority.issue(key=rsa_key).write_pem(self._file("broker-rsa"))
        authority.issue(name=USER, hosts=()).write_pem(self._file("client"))

    def _file(self, name: str) -> Path:
        return self._directory / f"{name}.pem"

    def broker_settings(self) -> dict[str, str]:
        """Return the settings of either broker."""
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        protocols = {"CONTROLLER": "PLAINTEXT", **LISTENERS}
        return {
            "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocols.items()),
            "sasl.enabled.mechanisms": MECHANISM,
            **{
                f"listener.name.{mode.listener.lower()}.{MECHANISM.lower()}.sasl.jaas.config": login
                for mode in (SCRAM, TLS_SCRAM)
            },
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._file("broker")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._file("authority")),
            "ssl.cipher.suites": ",".join(suite for suites in SUITES.values() for suite in suites),
            "listener.name.rsa.ssl.keystore.location": str(self._file("broker-rsa")),
            "listener.name.mutual.ssl.client.auth": "required",
        }

    def start(self, kind: str) -> Callable[[Path, Mapping[str, str]], Broker]:
        """Return a function that starts a broker of that kind with all listeners."""

        def start(home: Path, settings: Mapping[str, str]) -> Broker:
            port = consecutive_ports(len(LISTENERS))
            listeners = [f"{name}://127.0.0.1:{port + number}" for number, name in enumerate(LISTENERS)]
            given = {**self.broker_settings(), **settings}
            return START_ONE[kind](home, given, port=port, listeners=listeners[1:])

        return start

    def flags(self, mode: SecurityMode) -> dict[str, str]:
        """Return flags of the raw load generator."""
        flags = {}
        if mode.is_encrypted:
            flags |= {"authority": str(self._file("authority")), "tls_version": mode.version}
        if mode.has_certificate:
            flags["certificate"] = str(self._file("client"))
        if mode.logs_in:
            flags |= {"user": USER, "password": PASSWORD}
        return flags

    def client_config(self, mode: SecurityMode) -> Path:
        """Write a file of properties of Kafka's own clients; return it."""
        properties = {"security.protocol": mode.protocol}
        if mode.logs_in:
            properties = client_properties(MECHANISM, USER, PASSWORD, mode.protocol)
        if mode.is_encrypted:
            properties |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self._file("authority")),
                "ssl.enabled.protocols": f"TLSv{mode.version}",
                "ssl.cipher.suites": ",".join(SUITES[mode.version]),
            }
        if mode.has_certificate:
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._file("client"))}
        path = self._directory / "client.properties"
        write_properties(path, properties)
        return path


def prepare_user(broker: Broker, _size: Size) -> None:
    """Create the user that logs in, with 4,096 iterations."""
    load.administer(broker.bootstrap, "users", "add", USER, "--password", PASSWORD)
