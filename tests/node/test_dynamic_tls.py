"""The TLS settings of a listener change while the broker runs; connections stay open, new ones use the new settings."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.core.errors import BrokerConnectionError
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.tls.settings import TlsSettings
from barnabas.wire.errors import ErrorCode, KafkaError
from support.certificates import HOSTS, PASSWORD, Authority, Issued
from support.tls import AUTHORITY, TRUST, client_of, connected, settings_of, with_keys, write_keystore
from support.waiting import until

BROKER = AUTHORITY.issue()
CLIENT = AUTHORITY.issue(name="alice", hosts=())


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings_of(write_keystore(BROKER, tmp_path / "own.pem"))) as broker:
        yield broker


def alter(kafka: EmbeddedBroker, values: dict[str, str | None]) -> KafkaError | None:
    """Set or delete settings of the listener SSL; return the error."""
    resource = Resource(ResourceKind.BROKER, str(kafka.server.broker.broker_id))
    edits = [
        AlterConfigOp(f"listener.name.ssl.{name}", OpType.DELETE if value is None else OpType.SET, value)
        for name, value in values.items()
    ]
    return kafka.client.admin.alter_configs({resource: edits})[resource]


def presented(kafka: EmbeddedBroker) -> bytes | None:
    """Return the certificate that new connections see."""
    with connected(kafka) as encrypted:
        return encrypted.getpeercert(True)


def test_the_broker_gets_another_keystore(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    renewed = AUTHORITY.issue()
    stores: list[dict[str, str | None]] = [
        {
            "ssl.keystore.location": str(renewed.write_pkcs12(tmp_path / "renewed.p12")),
            "ssl.keystore.password": PASSWORD,
            "ssl.keystore.type": "PKCS12",
        },
        {
            "ssl.keystore.location": str(BROKER.write_pem(tmp_path / "encrypted.pem", "key-secret")),
            "ssl.keystore.type": "PEM",
            "ssl.key.password": "key-secret",
        },
    ]
    with client_of(kafka) as client:
        for store, issued in zip(stores, (renewed, BROKER), strict=True):
            assert alter(kafka, store) is None
            expected = ssl.PEM_cert_to_DER_cert(issued.certificate_pem)
            until(lambda expected=expected: presented(kafka) == expected)
            assert client.admin.describe_cluster().nodes


def test_a_keystore_that_cannot_be_used_is_refused_without_its_password(
    kafka: EmbeddedBroker, tmp_path: Path
) -> None:
    before = presented(kafka)
    store = {"ssl.keystore.location": str(tmp_path / "missing.p12"), "ssl.keystore.password": PASSWORD}
    error = alter(kafka, {**store, "ssl.keystore.type": "PKCS12"})
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert "missing.p12" in str(error)
    assert PASSWORD not in str(error)
    assert presented(kafka) == before


OTHER_NAME, FEWER_HOSTS = AUTHORITY.issue(name="other"), AUTHORITY.issue(hosts=["localhost"])


@pytest.mark.parametrize(
    ("issued", "why"),
    [
        (OTHER_NAME, "for CN=broker, like the one in use, not for CN=other"),
        (FEWER_HOSTS, r"also for 127\.0\.0\.1, like the one in use"),
    ],
)
def test_a_keystore_without_names_of_the_present_one_is_refused(
    kafka: EmbeddedBroker, tmp_path: Path, issued: Issued, why: str
) -> None:
    before = presented(kafka)
    write_keystore(issued, tmp_path / "own.pem")  # does not count: it is not in use
    location = str(write_keystore(issued, tmp_path / "other.pem"))
    error = alter(kafka, {"ssl.keystore.location": location})
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert re.search(why, str(error))
    assert presented(kafka) == before
    renewed = str(write_keystore(AUTHORITY.issue(hosts=(*HOSTS, "more")), tmp_path / "renewed.pem"))
    assert alter(kafka, {"ssl.keystore.location": renewed}) is None
    until(lambda: presented(kafka) != before)


@pytest.mark.parametrize("prefix", ["", "listener.name.ssl."])
def test_a_keystore_may_have_other_names_if_the_file_of_settings_allows_it(
    tmp_path: Path, prefix: str
) -> None:
    allowed = {f"{prefix}ssl.allow.{kind}.changes": "true" for kind in ("dn", "san")}
    settings = settings_of(write_keystore(BROKER, tmp_path / "own.pem"), **allowed)
    other = AUTHORITY.issue(name="other", hosts=["localhost"])
    with EmbeddedBroker(settings) as kafka:
        location = str(write_keystore(other, tmp_path / "other.pem"))
        assert alter(kafka, {"ssl.keystore.location": location}) is None
        expected = ssl.PEM_cert_to_DER_cert(other.certificate_pem)
        until(lambda: presented(kafka) == expected)


def test_texts_in_pem_replace_the_keystore(kafka: EmbeddedBroker) -> None:
    renewed = AUTHORITY.issue()
    assert (
        alter(
            kafka,
            {
                "ssl.keystore.location": "",
                "ssl.keystore.key": renewed.key_pem(),
                "ssl.keystore.certificate.chain": renewed.certificate_pem,
            },
        )
        is None
    )
    until(lambda: presented(kafka) == ssl.PEM_cert_to_DER_cert(renewed.certificate_pem))


def test_client_certificates_become_required_and_their_authority_changes(
    kafka: EmbeddedBroker, tmp_path: Path
) -> None:
    def is_served(tls: TlsSettings) -> bool:
        try:
            with client_of(kafka, tls=tls) as client:
                return bool(client.admin.describe_cluster().nodes)
        except BrokerConnectionError:
            return False

    other = Authority("Another")
    own, others = with_keys(CLIENT), with_keys(other.issue(name="bob"))
    assert is_served(TlsSettings(trust=TRUST))
    stores: list[tuple[dict[str, str | None], bool, bool]] = [
        ({"ssl.truststore.certificates": AUTHORITY.pem, "ssl.truststore.type": "PEM"}, True, False),
        (
            {
                "ssl.truststore.certificates": None,
                "ssl.truststore.location": str(other.write_pkcs12(tmp_path / "other.p12")),
                "ssl.truststore.password": PASSWORD,
                "ssl.truststore.type": "PKCS12",
            },
            False,
            True,
        ),
    ]
    for store, own_is_served, other_is_served in stores:
        assert alter(kafka, {**store, "ssl.client.auth": "required"}) is None
        until(lambda own_is_served=own_is_served: is_served(own) is own_is_served)
        assert is_served(others) is other_is_served
        assert not is_served(TlsSettings(trust=TRUST))


def test_versions_and_cipher_suites_change(kafka: EmbeddedBroker) -> None:
    assert alter(kafka, {"ssl.enabled.protocols": "TLSv1.2"}) is None
    until(lambda: version_of(kafka) == "TLSv1.2")
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert alter(kafka, {"ssl.cipher.suites": suite}) is None

    def suite_in_use() -> str:
        with connected(kafka) as encrypted:
            return (encrypted.cipher() or ("",))[0]

    until(lambda: suite_in_use() == "ECDHE-ECDSA-AES128-GCM-SHA256")
    error = alter(kafka, {"ssl.cipher.suites": "TLS_NULL_WITH_NULL_NULL"})
    assert error is not None
    assert "must be a secure suite" in str(error)


def version_of(kafka: EmbeddedBroker) -> str | None:
    with connected(kafka) as encrypted:
        return encrypted.version()
