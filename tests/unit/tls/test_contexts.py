import contextlib
import dataclasses
import ssl
from pathlib import Path

import pytest

from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.settings import ClientAuth, KeyStore, TlsError, TlsSettings, TrustStore
from barnabas.tls.stores import read_trusted
from support.certificates import PASSWORD, Authority, Issued

AUTHORITY = Authority()
BROKER = AUTHORITY.issue()
CLIENT = AUTHORITY.issue(name="alice", hosts=())
TRUST = TrustStore("PEM", certificates=AUTHORITY.pem)

#: A record's type, and a message's.
HANDSHAKE, NEW_SESSION_TICKET = 22, 4


def keys_of(issued: Issued) -> KeyStore:
    return KeyStore("PEM", key=issued.key_pem(), certificate_chain=issued.certificate_pem)


def shake_hands(
    server: TlsSettings, client: TlsSettings, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Connect both in memory; return the two ends."""
    return connect(server_context(server), client_context(client), host)


def connect(
    server: ssl.SSLContext,
    client: ssl.SSLContext,
    host: str = "localhost",
    session: ssl.SSLSession | None = None,
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host, session=session),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    with pytest.raises(ssl.SSLWantReadError):  # else the client has an alert
        ends[0].read()
    return ends[0], ends[1]


SERVER = TlsSettings(keys_of(BROKER))


def test_a_client_trusts_the_authority_of_the_broker() -> None:
    client, _ = shake_hands(SERVER, TlsSettings(trust=TRUST))
    assert client.version() == "TLSv1.3"


def test_a_client_trusts_the_certificate_of_the_broker_itself() -> None:
    shake_hands(SERVER, TlsSettings(trust=TrustStore("PEM", certificates=BROKER.certificate_pem)))


@pytest.mark.parametrize(
    ("issued", "trust", "why"),
    [
        (BROKER, Authority("Another").pem, "unable to get local issuer certificate"),
        (BROKER, None, "unable to get local issuer certificate"),
        (AUTHORITY.issue(days=-1), AUTHORITY.pem, "certificate has expired"),
        (AUTHORITY.issue(hosts=["broker.example"]), AUTHORITY.pem, "Hostname mismatch"),
        (Authority().issue(), AUTHORITY.pem, "unable to get local issuer certificate"),
        (Authority(has_key_ids=False).issue(), AUTHORITY.pem, "certificate signature failure"),
    ],
)
def test_a_client_refuses_a_certificate(issued: Issued, trust: str | None, why: str) -> None:
    store = None if trust is None else TrustStore("PEM", certificates=trust)
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        shake_hands(TlsSettings(keys_of(issued)), TlsSettings(trust=store))


def test_certificates_need_not_name_their_keys() -> None:
    authority = Authority(has_key_ids=False)
    shake_hands(
        TlsSettings(keys_of(authority.issue())),
        TlsSettings(trust=TrustStore("PEM", certificates=authority.pem)),
    )


def test_a_client_that_does_not_identify_the_endpoint_accepts_another_host_name() -> None:
    settings = TlsSettings(keys_of(AUTHORITY.issue(hosts=["broker.example"])))
    shake_hands(settings, TlsSettings(trust=TRUST, verifies_host_name=False))


@pytest.mark.parametrize(("auth", "is_refused"), [(ClientAuth.REQUIRED, True), (ClientAuth.REQUESTED, False)])
def test_a_broker_may_require_a_certificate(auth: ClientAuth, is_refused: bool) -> None:
    server = dataclasses.replace(SERVER, trust=TRUST, client_auth=auth)
    _, end = shake_hands(server, TlsSettings(keys_of(CLIENT), TRUST))
    assert end.getpeercert(True)
    if is_refused:
        with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            shake_hands(server, TlsSettings(trust=TRUST))
    else:
        assert shake_hands(server, TlsSettings(trust=TRUST))[1].getpeercert(True) is None
    other = Authority("Another").issue(name="mallory")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, TlsSettings(keys_of(other), TRUST))


@pytest.mark.parametrize("store_type", ["PKCS12", "JKS"])
def test_pkcs12_stores_are_read(tmp_path: Path, store_type: str) -> None:
    own = BROKER.write_pkcs12(tmp_path / "own.p12")
    trusted = AUTHORITY.write_pkcs12(tmp_path / "trusted.p12")
    shake_hands(
        TlsSettings(KeyStore(store_type, str(own), PASSWORD)),
        TlsSettings(trust=TrustStore(store_type, str(trusted), PASSWORD)),
    )


def test_a_key_store_as_trust_store_trusts_its_certificate_and_not_the_issuers(tmp_path: Path) -> None:
    path = BROKER.write_pkcs12(tmp_path / "own.p12")
    trust = TrustStore("PKCS12", str(path), PASSWORD)
    assert "PRIVATE KEY" not in read_trusted(trust)
    server = TlsSettings(keys_of(BROKER), trust, client_auth=ClientAuth.REQUIRED)
    shake_hands(server, TlsSettings(keys_of(BROKER), TRUST))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, TlsSettings(keys_of(CLIENT), TRUST))


@pytest.mark.parametrize("store_type", ["PEM", "JKS"])
def test_pem_stores_are_read_whatever_the_default_type_says(tmp_path: Path, store_type: str) -> None:
    own = BROKER.write_pem(tmp_path / "own.pem", "key-secret")
    trusted = AUTHORITY.write_pem(tmp_path / "trusted.pem")
    shake_hands(
        TlsSettings(KeyStore(store_type, str(own), key_password="key-secret")),
        TlsSettings(trust=TrustStore(store_type, str(trusted))),
    )


@pytest.mark.parametrize(
    ("content", "store", "why"),
    [
        (None, KeyStore("PEM", "{}"), "ssl.keystore.location={}: cannot be read: No such file or directory"),
        (b"nonsense", KeyStore("PEM", "{}"), "ssl.keystore.location={}: must be a PEM file"),
        (b"nonsense", KeyStore("PKCS12", "{}"), "must be a PKCS#12 store that ssl.keystore.password opens"),
        (b"\xfe\xed\xfe\xed", KeyStore("JKS", "{}"), "has Java's old format; convert it with keytool"),
        (AUTHORITY.pem.encode(), KeyStore("PEM", "{}"), "must have a private key and its certificates"),
        (
            (BROKER.key_pem("a") + BROKER.certificate_pem).encode(),
            KeyStore("PEM", "{}"),
            "ssl.key.password must open the private key",
        ),
    ],
)
def test_unusable_key_stores_are_reported(
    tmp_path: Path, content: bytes | None, store: KeyStore, why: str
) -> None:
    path = tmp_path / "store"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TlsError) as refused:
        server_context(TlsSettings(dataclasses.replace(store, location=str(path))))
    assert why.format(path) in str(refused.value)


def test_unusable_trust_stores_are_reported(tmp_path: Path) -> None:
    path = BROKER.write_pkcs12(tmp_path / "own.p12")
    with pytest.raises(TlsError, match=r"that ssl\.truststore\.password opens"):
        client_context(TlsSettings(trust=TrustStore("PKCS12", str(path), "wrong")))
    with pytest.raises(TlsError, match=r"ssl\.truststore\.certificates must have certificates"):
        client_context(TlsSettings(trust=TrustStore("PEM", certificates="nonsense")))


def test_texts_may_have_blanks_for_line_ends() -> None:
    keys = KeyStore(
        "PEM",
        key=BROKER.key_pem().replace("\n", " "),
        certificate_chain=BROKER.certificate_pem.replace("\n", " "),
    )
    shake_hands(
        TlsSettings(keys), TlsSettings(trust=TrustStore("PEM", certificates=AUTHORITY.pem.replace("\n", " ")))
    )


def test_comments_of_any_language_may_be_among_certificates(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(f"# Főtanúsítvány\n{AUTHORITY.pem}", encoding="utf-8")
    for store in (
        TrustStore("PEM", str(path)),
        TrustStore("PEM", certificates=path.read_text(encoding="utf-8")),
    ):
        shake_hands(SERVER, TlsSettings(trust=store))


def test_a_listener_needs_keys() -> None:
    with pytest.raises(TlsError, match=r"ssl.keystore.location or ssl.keystore.key must be set"):
        server_context(TlsSettings())


def test_versions_are_limited() -> None:
    old = TlsSettings(trust=TRUST, versions=("TLSv1.2",))
    assert shake_hands(SERVER, old)[0].version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError, match=r"UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION"):
        shake_hands(dataclasses.replace(SERVER, versions=("TLSv1.3",)), old)


def test_cipher_suites_are_limited() -> None:
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)
    client, _ = shake_hands(dataclasses.replace(SERVER, cipher_suites=suites), TlsSettings(trust=TRUST))
    assert client.cipher() == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2", 128)
    newer = dataclasses.replace(SERVER, cipher_suites=("TLS_AES_128_GCM_SHA256",))
    assert shake_hands(newer, TlsSettings(trust=TRUST))[0].version() == "TLSv1.3"
    older_only = dataclasses.replace(SERVER, versions=("TLSv1.2",), cipher_suites=("TLS_AES_128_GCM_SHA256",))
    with pytest.raises(TlsError, match=r"must have a suite of a version in ssl\.enabled\.protocols"):
        server_context(older_only)
    with pytest.raises(
        TlsError, match=r"ssl.cipher.suites=TLS_RSA_WITH_NULL_MD5: must be a secure suite, such as"
    ):
        server_context(dataclasses.replace(SERVER, cipher_suites=(*suites, "TLS_RSA_WITH_NULL_MD5")))


def test_a_client_resumes_with_the_one_ticket_that_it_gets() -> None:
    server, client = server_context(SERVER), client_context(TlsSettings(trust=TRUST))
    tickets_count = 0

    def observe(_end: object, direction: str, _version: object, kind: int, message: int, _: object) -> None:
        nonlocal tickets_count
        tickets_count += (direction, kind, message) == ("read", HANDSHAKE, NEW_SESSION_TICKET)

    client._msg_callback = observe  # type: ignore[attr-defined]
    first, _ = connect(server, client)
    assert (tickets_count, first.session_reused) == (1, False)
    second, _ = connect(server, client, session=first.session)
    assert (tickets_count, second.session_reused) == (2, True)


def test_a_client_that_resumes_keeps_its_certificate() -> None:
    server = server_context(dataclasses.replace(SERVER, trust=TRUST, client_auth=ClientAuth.REQUIRED))
    client = client_context(TlsSettings(keys_of(CLIENT), TRUST))
    first, _ = connect(server, client)
    second, end = connect(server, client, session=first.session)
    assert second.session_reused
    assert end.getpeercert(True) == ssl.PEM_cert_to_DER_cert(CLIENT.certificate_pem)
