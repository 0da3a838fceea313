"""A listener gets another keystore while the broker runs: which certificates are accepted after the one in use."""

import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import NameOID
from interop.brokers import Broker
from interop.targets import START_ONE

from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import ErrorCode, KafkaError
from interop import sasl
from support.certificates import HOSTS, Authority, Issued
from support.waiting import until

AUTHORITY = Authority()
ORGANIZATION, NAME = (NameOID.ORGANIZATION_NAME, "Acme Inc"), (NameOID.COMMON_NAME, "broker")
OTHER_NAME = (NameOID.COMMON_NAME, "other")

Attribute = tuple[x509.ObjectIdentifier, str]


def issue(*subject: Attribute, hosts: tuple[str, ...] = HOSTS) -> Issued:
    names = subject or (ORGANIZATION, NAME)
    parts = [x509.RelativeDistinguishedName([x509.NameAttribute(*name)]) for name in names]
    return AUTHORITY.issue(*parts, hosts=hosts)


@dataclass(frozen=True)
class Site:
    """A broker with a listener that presents a certificate of broker, Acme Inc for `HOSTS`."""

    broker: Broker
    address: str
    directory: Path

    def change_keystore(self, issued: Issued) -> KafkaError | None:
        path = issued.write_pem(self.directory / f"{issued.certificate.serial_number}.pem")
        change = AlterConfigOp("listener.name.own.ssl.keystore.location", OpType.SET, str(path))
        with BlockingClient(self.broker.bootstrap) as client:
            (node,) = client.admin.describe_cluster().nodes
            resource = Resource(ResourceKind.BROKER, str(node.node_id))
            return client.admin.alter_configs({resource: [change]})[resource]

    def presented(self) -> bytes | None:
        """Return the certificate that a new connection sees."""
        context = ssl.create_default_context(cadata=AUTHORITY.pem)
        context.check_hostname = False
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as plain, context.wrap_socket(plain) as tls:
            return tls.getpeercert(binary_form=True)


def start(target: str, directory: Path, settings: Mapping[str, str]) -> Site:
    address = sasl.free_address(1)
    given = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OWN:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(issue().write_pem(directory / "own.pem")),
        **settings,
    }
    broker = START_ONE[target](directory, given, listeners=[f"OWN://{address}"])
    return Site(broker, address, directory)


@pytest.fixture
def site(
    target: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    site = start(target, tmp_path_factory.mktemp("keystores"), getattr(request, "param", {}))
    yield site
    site.broker.stop()


def test_a_certificate_needs_the_names_of_the_one_in_use(site: Site) -> None:
    before = site.presented()
    refused = [
        issue(ORGANIZATION, OTHER_NAME),
        issue(NAME, ORGANIZATION),
        issue(NAME),
        issue(ORGANIZATION, NAME, (NameOID.ORGANIZATIONAL_UNIT_NAME, "x")),
        issue(hosts=HOSTS[:1]),
        issue(hosts=()),
        issue(hosts=tuple(host.upper() for host in HOSTS)),
    ]
    for issued in refused:
        error = site.change_keystore(issued)
        assert error is not None, issued.certificate
        assert error.code is ErrorCode.INVALID_REQUEST
    assert site.presented() == before
    accepted = [
        issue(),
        issue((NameOID.ORGANIZATION_NAME, " ACME  inc "), NAME),
        issue(hosts=(*reversed(HOSTS), "more")),
    ]
    for issued in accepted:
        assert site.change_keystore(issued) is None
        expected = ssl.PEM_cert_to_DER_cert(issued.certificate_pem)
        until(lambda expected=expected: site.presented() == expected)
    assert site.change_keystore(issue()) is not None  # a host of the present one is missing


@pytest.mark.parametrize(
    "site",
    [{"ssl.allow.dn.changes": "true"}, {"listener.name.own.ssl.allow.dn.changes": "true"}],
    indirect=True,
)
def test_the_file_of_settings_may_allow_another_subject(site: Site) -> None:
    assert site.change_keystore(issue(ORGANIZATION, OTHER_NAME, hosts=HOSTS[:1])) is not None
    issued = issue(ORGANIZATION, OTHER_NAME)
    assert site.change_keystore(issued) is None
    until(lambda: site.presented() == ssl.PEM_cert_to_DER_cert(issued.certificate_pem))


@pytest.mark.parametrize("site", [{"ssl.allow.san.changes": "true"}], indirect=True)
def test_it_may_allow_other_hosts(site: Site) -> None:
    assert site.change_keystore(issue(OTHER_NAME, hosts=())) is not None
    issued = issue(hosts=())
    assert site.change_keystore(issued) is None
    until(lambda: site.presented() == ssl.PEM_cert_to_DER_cert(issued.certificate_pem))
