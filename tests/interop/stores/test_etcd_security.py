"""TLS with certificates of both sides, and a user with a password whose token expires."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from barnabas.base.clock import ManualClock, SystemClock
from barnabas.config.load import load_broker_config
from barnabas.metadata.store import Item, Store, StoreChange, StoreError
from barnabas.server.shutdown import Shutdown
from barnabas.server.stores import open_store
from barnabas.stores.etcd_gateway import Gateway
from barnabas.stores.etcd_keys import encode
from barnabas.stores.etcd_url import parse_etcd_url
from barnabas.tls.contexts import client_context
from barnabas.tls.reloading import CHECK_INTERVAL_MS
from interop import etcd
from support.certificates import PASSWORD as STORE_PASSWORD
from support.certificates import Authority, Issued
from support.loop import on_loop
from support.tls import AUTHORITY, with_keys, write_keystore
from unit.stores.store_contract import take

USER, PASSWORD = "broker", "open sesame"
TOKEN_TTL_S = 1
#: The gateway refuses clients with a CN if there are users.
SUBJECT = x509.RelativeDistinguishedName([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "client")])
SERVER, CLIENT = AUTHORITY.issue(name="etcd", hosts=("127.0.0.1",)), AUTHORITY.issue(SUBJECT, hosts=())
EXPIRED = AUTHORITY.issue(SUBJECT, days=-1)
OTHER = Authority("Another", has_key_ids=False)

KEYSTORE, TRUSTSTORE = "barnabas.store.ssl.keystore.", "barnabas.store.ssl.truststore."
LOGIN = {"barnabas.store.user": USER, "barnabas.store.password": PASSWORD}
TRUST = {f"{TRUSTSTORE}certificates": AUTHORITY.pem, f"{TRUSTSTORE}type": "PEM"}
TEXTS = {
    f"{KEYSTORE}key": CLIENT.key_pem(),
    f"{KEYSTORE}certificate.chain": CLIENT.certificate_pem,
    f"{KEYSTORE}type": "PEM",
    **TRUST,
}
#: Older members have one alert for everything.
EXPIRED_REASON = r"it (reports that the client certificate has expired|refuses the client certificate)"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[etcd.Member]]:
    directory = tmp_path_factory.mktemp("certificates")
    token_key = rsa.generate_private_key(65537, 2048)
    files = {
        "server.crt": SERVER.certificate_pem,
        "server.key": SERVER.key_pem(),
        "ca.crt": AUTHORITY.pem,
        "token.key": token_key.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        ).decode(),
        "token.pub": token_key.public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        .decode(),
    }
    for name, text in files.items():
        (directory / name).write_text(text)
    token_keys = f"pub-key={directory / 'token.pub'},priv-key={directory / 'token.key'}"
    settings = (
        f"--cert-file={directory / 'server.crt'}",
        f"--key-file={directory / 'server.key'}",
        f"--trusted-ca-file={directory / 'ca.crt'}",
        "--client-cert-auth",
        f"--auth-token=jwt,{token_keys},sign-method=RS256,ttl={TOKEN_TTL_S}s",
    )
    with etcd.running(tmp_path_factory.mktemp("etcd"), settings=settings, scheme="https") as members:
        on_loop(enable_authentication)(members)
        yield members


async def enable_authentication(members: list[etcd.Member]) -> None:
    context = client_context(with_keys(CLIENT))
    gateway = Gateway(parse_etcd_url(etcd.url(members, scheme="etcds")).endpoints, lambda: context)
    for name in ("root", USER):
        await gateway.call("/v3/auth/user/add", {"name": name, "password": PASSWORD})
        await gateway.call("/v3/auth/role/add", {"name": name})
        await gateway.call("/v3/auth/user/grant", {"user": name, "role": name})
    permission = {"permType": "READWRITE", "key": encode("own/"), "range_end": encode("own0")}
    await gateway.call("/v3/auth/role/grant", {"name": USER, "perm": permission})
    await gateway.call("/v3/auth/enable", {})
    gateway.close()


@asynccontextmanager
async def opened(
    members: list[etcd.Member],
    prefix: str,
    settings: dict[str, str],
    *,
    host: str = "127.0.0.1",
    clock: SystemClock | ManualClock | None = None,
) -> AsyncIterator[Store]:
    url = etcd.url(members, scheme="etcds", prefix=prefix).replace("127.0.0.1", host)
    given = [f"{key}={value}" for key, value in {"barnabas.store": url, **LOGIN, **settings}.items()]
    config = load_broker_config(file={}, environment={}, settings=given).config
    shutdown = Shutdown()
    try:
        yield open_store(config, clock or SystemClock(), shutdown)
    finally:
        await shutdown.run()


@on_loop
async def test_a_user_works_over_tls_also_after_the_token_has_expired(secured: list[etcd.Member]) -> None:
    async with opened(secured, "own/a", TEXTS) as store:
        commits = store.watch(0)
        assert await store.commit({}, (StoreChange("a", b"1"),)) == 1
        assert await store.open_session("sessions/1", b"one") == 2
        await asyncio.sleep(TOKEN_TTL_S + 1)  # JWT counts whole seconds
        assert await store.commit({"a": 1}, (StoreChange("a", b"2"),)) == 3
        assert [commit.revision for commit in await take(commits, 3)] == [1, 2, 3]
        assert (await store.load())[1] == [Item("a", b"2", 3), Item("sessions/1", b"one", 2)]
        assert [member.role for member in await store.members()] == ["leader"]
        await commits.aclose()  # type: ignore[attr-defined]


def pem_files(directory: Path) -> dict[str, str]:
    return {
        f"{KEYSTORE}location": str(CLIENT.write_pem(directory / "own.pem", "key-secret")),
        "barnabas.store.ssl.key.password": "key-secret",
        f"{TRUSTSTORE}location": str(AUTHORITY.write_pem(directory / "ca.pem")),
    }


def pkcs12_stores(directory: Path) -> dict[str, str]:
    return {
        f"{KEYSTORE}location": str(CLIENT.write_pkcs12(directory / "own.p12")),
        f"{KEYSTORE}password": STORE_PASSWORD,
        f"{KEYSTORE}type": "PKCS12",
        f"{TRUSTSTORE}location": str(AUTHORITY.write_pkcs12(directory / "trust.p12")),
        f"{TRUSTSTORE}password": STORE_PASSWORD,
        f"{TRUSTSTORE}type": "PKCS12",
    }


def provided(directory: Path) -> dict[str, str]:
    """Return variables for the values of texts, each of which is in a file."""
    for name, text in {**TEXTS, **LOGIN}.items():
        (directory / name).write_text(text)
    package = "org.apache.kafka.common.config.provider"
    return {
        "config.providers": "dir",
        "config.providers.dir.class": f"{package}.DirectoryConfigProvider",
        **{name: f"${{dir:{directory}:{name}}}" for name in (*TEXTS, *LOGIN)},
    }


def with_tls_1_2(_: Path) -> dict[str, str]:
    return {
        **TEXTS,
        "barnabas.store.ssl.enabled.protocols": "TLSv1.2",
        "barnabas.store.ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    }


@pytest.mark.parametrize("form", [pem_files, pkcs12_stores, provided, with_tls_1_2])
def test_keys_and_certificates_have_the_forms_of_those_of_listeners(
    secured: list[etcd.Member], tmp_path: Path, form: Callable[[Path], dict[str, str]]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with opened(secured, f"own/{form.__name__}", form(tmp_path)) as store:
            assert await store.commit({}, (StoreChange("a", b"1"),)) == 1

    scenario()


UNTRUSTED = {**TEXTS, f"{TRUSTSTORE}certificates": OTHER.pem}


def presenting(issued: Issued) -> dict[str, str]:
    return {
        **TEXTS,
        f"{KEYSTORE}key": issued.key_pem(),
        f"{KEYSTORE}certificate.chain": issued.certificate_pem,
    }


@pytest.mark.parametrize(
    ("prefix", "settings", "host", "message"),
    [
        ("others", TEXTS, "127.0.0.1", "permission denied: the user in barnabas.store.user"),
        ("own/b", {**TEXTS, "barnabas.store.password": "wrong"}, "127.0.0.1", "authentication failed"),
        ("own/b", {**TEXTS, "barnabas.store.user": ""}, "127.0.0.1", "barnabas.store.user"),
        ("own/b", UNTRUSTED, "127.0.0.1", "its certificate is not trusted: unable to get local issuer"),
        ("own/b", {}, "127.0.0.1", "its certificate is not trusted: unable to get local issuer"),
        ("own/b", TEXTS, "localhost", "its certificate is not trusted: Hostname mismatch.*'localhost'"),
        ("own/b", TRUST, "127.0.0.1", r"it re(fuses|quires) (the|a) client certificate"),
        ("own/b", presenting(AUTHORITY.issue(name="client")), "127.0.0.1", "must have no CN"),
        ("own/b", presenting(EXPIRED), "127.0.0.1", EXPIRED_REASON),
        (
            "own/b",
            presenting(OTHER.issue(SUBJECT)),
            "127.0.0.1",
            r"it (does not trust|refuses) the client certificate",
        ),
    ],
)
def test_what_etcd_or_the_broker_does_not_accept_is_reported(
    secured: list[etcd.Member],
    monkeypatch: pytest.MonkeyPatch,
    prefix: str,
    settings: dict[str, str],
    host: str,
    message: str,
) -> None:
    monkeypatch.setattr("barnabas.stores.etcd_gateway.RETRY_TIMEOUT_S", 0.0)

    @on_loop
    async def scenario() -> None:
        async with opened(secured, prefix, settings, host=host) as store:
            with pytest.raises(StoreError, match=message):
                await store.load()

    scenario()


def test_requests_use_changed_files_within_a_second(
    secured: list[etcd.Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.stores.etcd_gateway.RETRY_TIMEOUT_S", 0.0)
    clock = ManualClock()
    keystore = write_keystore(CLIENT, tmp_path / "own.pem")

    @on_loop
    async def scenario() -> None:
        settings = {f"{KEYSTORE}location": str(keystore), **TRUST}
        async with opened(secured, "own/c", settings, clock=clock) as store:
            await store.load()
            write_keystore(EXPIRED, keystore)
            await store.load()
            clock.advance(CHECK_INTERVAL_MS)
            with pytest.raises(StoreError, match=EXPIRED_REASON):
                await store.load()
            write_keystore(AUTHORITY.issue(SUBJECT), keystore)
            clock.advance(CHECK_INTERVAL_MS)
            await store.load()

    scenario()
