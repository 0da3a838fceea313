"""Real clients connect with TLS: encrypted, with certificates of their own, and with each kind of login."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from interop.brokers import shifted
from interop.clients import KINDS, Client, ClientError
from interop.reference import tool, write_properties
from interop.targets import BROKERS_COUNT, START
from interop.topics import eventually, make_topic, write, write_and_read

from interop import sasl
from support.certificates import PASSWORD, Authority, Issued

SECURE = [kind.name for kind in KINDS.values() if kind.is_secure]

#: The listeners with TLS and their security protocols.
LISTENERS = {
    "ENCRYPTED": "SSL",
    "MUTUAL": "SSL",  # requires certificates of clients
    "ARCHIVED": "SSL",  # as well, with stores in PKCS#12
    "ELSEWHERE": "SSL",  # its certificate is another host's
    "CLIENTS": "SASL_SSL",
}


@dataclass(frozen=True)
class Site:
    """The broker's addresses by listener, and a directory with certificates."""

    addresses: Mapping[str, str]
    directory: Path

    def files(self, *names: str) -> list[Path]:
        """Return the file of an authority, and that of a client's key and certificate."""
        return [self.directory / f"{name}.pem" for name in names]


def issue(authority: Authority, user: str, days: int = 1) -> Issued:
    """Issue a certificate for CN=user,O=Orders."""
    names = [(x509.NameOID.ORGANIZATION_NAME, "Orders"), (x509.NameOID.COMMON_NAME, user)]
    parts = [x509.RelativeDistinguishedName([x509.NameAttribute(*name)]) for name in names]
    return authority.issue(*parts, hosts=(), days=days)


def write_certificates(directory: Path) -> None:
    """Write the files of the broker, of clients, and of an authority that neither side knows."""
    authority, foreign = Authority(), Authority("Foreign Authority")
    authority.write_pem(directory / "authority.pem")
    authority.write_pkcs12(directory / "authority.p12")
    foreign.write_pem(directory / "foreign-authority.pem")
    server = authority.issue()
    server.write_pem(directory / "server.pem")
    server.write_pkcs12(directory / "server.p12")
    authority.issue(hosts=("elsewhere.example",)).write_pem(directory / "elsewhere.pem")
    issue(authority, "alice").write_pem(directory / "alice.pem")
    issue(authority, "bob").write_pem(directory / "bob.pem")
    issue(authority, "alice", days=-1).write_pem(directory / "expired.pem")
    issue(foreign, "alice").write_pem(directory / "foreign.pem")


def listener_settings(name: str, **settings: str | Path) -> dict[str, str]:
    """Return settings of a listener; `_` stands for a dot."""
    prefix = f"listener.name.{name.lower()}.ssl."
    return {prefix + key.replace("_", "."): str(value) for key, value in settings.items()}


def broker_settings(directory: Path) -> dict[str, str]:
    protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **LISTENERS}
    stores_in_pkcs12 = listener_settings(
        "ARCHIVED",
        keystore_type="PKCS12",
        keystore_location=directory / "server.p12",
        keystore_password=PASSWORD,
        truststore_type="PKCS12",
        truststore_location=directory / "authority.p12",
        truststore_password=PASSWORD,
    )
    return {
        **sasl.SETTINGS,
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "authority.pem"),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),O=Orders$/$1/",
        **listener_settings("MUTUAL", client_auth="required"),
        **listener_settings("ARCHIVED", client_auth="required"),
        **stores_in_pkcs12,
        **listener_settings("ELSEWHERE", keystore_location=directory / "elsewhere.pem"),
        "delegation.token.secret.key": "secret of the brokers",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }


@pytest.fixture(scope="module")
def site(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("tls")
    write_certificates(directory)
    addresses = {name: sasl.free_address(BROKERS_COUNT) for name in LISTENERS}
    listeners = [f"{name}://{address}" for name, address in addresses.items()]
    broker = START[target](directory, broker_settings(directory), listeners=listeners)
    try:
        sasl.create_scram_users(broker.bootstrap)
        yield Site({**addresses, "PLAINTEXT": broker.bootstrap}, directory)
    finally:
        broker.stop()


@dataclass(frozen=True)
class Connect:
    """Starts clients, which end with the test."""

    site: Site
    logs: Path
    stack: ExitStack

    def __call__(
        self,
        name: str,
        listener: str,
        *,
        tls: Sequence[str] = ("authority",),
        login: Sequence[str] = (),
        patience_s: float | None = None,
    ) -> Client:
        log = self.logs / f"{name}-{'-'.join(tls)}.log"
        address, files = self.site.addresses[listener], self.site.files(*tls)
        return self.stack.enter_context(closing(Client(KINDS[name], address, log, login, files, patience_s)))


@pytest.fixture
def connect(site: Site, tmp_path: Path) -> Iterator[Connect]:
    with ExitStack() as stack:
        yield Connect(site, tmp_path, stack)


#: The ways to connect: a listener, the files of the client, and its login.
WAYS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "SSL": ("ENCRYPTED", ("authority",), ()),
    "mTLS": ("MUTUAL", ("authority", "alice"), ()),
    **{mechanism: ("CLIENTS", ("authority",), login) for mechanism, login in sasl.LOGINS.items()},
}


@pytest.mark.parametrize("name", SECURE)
@pytest.mark.parametrize("way", WAYS)
def test_a_client_connects_with_tls_and_works(site: Site, connect: Connect, name: str, way: str) -> None:
    listener, tls, login = WAYS[way]
    client = connect(name, listener, tls=tls, login=login)
    assert write_and_read(client, f"tls-{name}-{way}") == ["one", "two"]
    addresses = [shifted(site.addresses[listener], number) for number in range(BROKERS_COUNT)]
    assert sorted(client.do("metadata")["brokers"]) == sorted(addresses)


def test_a_listener_with_stores_in_pkcs12_works_as_well(connect: Connect) -> None:
    client = connect("franz-go", "ARCHIVED", tls=("authority", "alice"))
    assert write_and_read(client, "tls-pkcs12") == ["one", "two"]


#: What each client says of a certificate for another host, and of one by an authority that it does not trust.
REFUSALS = {
    "confluent-kafka": ("certificate verify failed", "certificate verify failed"),
    "kafka-python": ("not valid for '127.0.0.1'", "certificate verify failed"),
    "java": ("No subject alternative names matching", "unable to find valid certification path"),
    "franz-go": ("cannot validate certificate for 127.0.0.1", "certificate signed by unknown authority"),
    "sarama": ("cannot validate certificate for 127.0.0.1", "certificate signed by unknown authority"),
    "kafkajs": ("IP: 127.0.0.1 is not in the cert's list", "certificate"),
}


def refusal(client: Client) -> str:
    """Return how a client fails: its error, and what it logs."""
    with pytest.raises((ClientError, EOFError)) as refused:
        client.do("metadata")
    return f"{refused.value}\n{client.log.read_text()}"


@pytest.mark.parametrize("name", SECURE)
def test_a_client_refuses_the_certificate_of_another_host(connect: Connect, name: str) -> None:
    assert REFUSALS[name][0] in refusal(connect(name, "ELSEWHERE", patience_s=2))


@pytest.mark.parametrize("name", SECURE)
def test_a_client_refuses_a_certificate_by_an_unknown_authority(connect: Connect, name: str) -> None:
    client = connect(name, "ENCRYPTED", tls=("foreign-authority",), patience_s=2)
    assert REFUSALS[name][1] in refusal(client)


@pytest.mark.parametrize("name", ["java", "franz-go", "sarama"])
@pytest.mark.parametrize("certificates", [[], ["foreign"], ["expired"]], ids=["none", "foreign", "expired"])
def test_the_broker_refuses_a_client_without_a_valid_certificate(
    connect: Connect, name: str, certificates: list[str]
) -> None:
    client = connect(name, "MUTUAL", tls=("authority", *certificates))
    alert = r"(remote error: tls|Received fatal alert): .*(certificate|unknown_ca)"
    assert re.search(alert, refusal(client))


def test_a_client_that_is_refused_again_and_again_does_not_disturb_another(connect: Connect) -> None:
    topic = "tls-undisturbed"
    writer = connect("franz-go", "ENCRYPTED")
    make_topic(writer, topic)
    reader = connect("confluent-kafka", "MUTUAL", tls=("authority", "alice"))
    reader.do("join_group", topic=topic, group=topic)
    eventually(lambda: reader.do("membership")["partitions"] == [0])
    refused = connect("confluent-kafka", "MUTUAL", tls=("authority", "expired"))
    refused.do("join_group", topic=topic, group=topic)
    for value in ("one", "two", "three"):
        seen = attempts_count(refused)
        eventually(lambda before=seen: attempts_count(refused) > before)
        write(writer, topic, value)
    eventually(lambda: reader.do("membership")["values"] == ["one", "two", "three"])
    assert reader.do("membership")["assignments"] == 1
    assert reader.log.read_text() == ""


def attempts_count(refused: Client) -> int:
    return refused.log.read_text().count("SSL alert number")


@pytest.fixture(scope="module")
def command_config(site: Site) -> Path:
    """Return a file for --command-config, with which alice logs in over TLS."""
    path = site.directory / "alice.properties"
    [authority] = site.files("authority")
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority)}
    write_properties(path, sasl.client_properties(*sasl.LOGINS["PLAIN"], "SASL_SSL") | trust)
    return path


def test_kafka_topics_lists_topics_over_tls(site: Site, connect: Connect, command_config: Path) -> None:
    make_topic(connect("franz-go", "ENCRYPTED"), "tls-listed")
    connection = ("--bootstrap-server", site.addresses["CLIENTS"], "--command-config", command_config)
    assert "tls-listed" in tool("kafka-topics", *connection, "--list").stdout.split()


@pytest.fixture(scope="module")
def token(site: Site, command_config: Path) -> tuple[str, str]:
    """Return id and HMAC of a delegation token of alice."""
    return sasl.create_token(site.addresses["CLIENTS"], command_config)


@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if kind.takes_tokens])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_logs_in_with_a_delegation_token_over_tls(
    connect: Connect, token: tuple[str, str], name: str, mechanism: str
) -> None:
    client = connect(name, "CLIENTS", login=(mechanism, *token, "token"))
    assert write_and_read(client, f"tls-token-{name}-{mechanism}") == ["one", "two"]


def test_the_certificate_or_the_token_says_who_may_read_a_topic(
    connect: Connect, token: tuple[str, str]
) -> None:
    topic = "tls-of-alice"
    owner = connect("franz-go", "PLAINTEXT", tls=())
    make_topic(owner, topic)
    write(owner, topic, "one")
    owner.do("create_acl", topic=topic, principal="User:alice")
    bob = connect("franz-go", "MUTUAL", tls=("authority", "bob"))
    carol = connect("franz-go", "CLIENTS", login=sasl.LOGINS["SCRAM-SHA-256"])
    for other in (bob, carol):
        eventually(lambda client=other: first_value(client, topic) == "TOPIC_AUTHORIZATION_FAILED")
    alice = connect("franz-go", "MUTUAL", tls=("authority", "alice"))
    holder = connect("franz-go", "CLIENTS", login=("SCRAM-SHA-256", *token, "token"))
    assert [first_value(client, topic) for client in (alice, holder)] == ["one", "one"]


def first_value(client: Client, topic: str) -> str:
    """Return the first value of a topic, or the error's name."""
    try:
        return str(client.do("consume", topic=topic, partition=0, count=1)[0]["value"])
    except ClientError as error:
        return error.name
