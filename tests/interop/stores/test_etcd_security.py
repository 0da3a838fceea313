"""TLS with certificates of both sides, and a user with a password whose token expires."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.base.clock import SystemClock
from barnabas.config.load import load_broker_config
from barnabas.metadata.store import Item, Store, StoreChange, StoreError
from barnabas.server.shutdown import Shutdown
from barnabas.server.stores import open_store
from barnabas.stores.etcd_gateway import Credentials, Gateway
from barnabas.stores.etcd_keys import encode
from barnabas.stores.etcd_url import parse_etcd_url
from interop import etcd
from support.loop import on_loop
from unit.stores.store_contract import take

USER, PASSWORD = "broker", "open sesame"
TOKEN_TTL_S = 1


class Certificates(NamedTuple):
    """PEM files, all in one directory."""

    directory: Path

    def file(self, name: str) -> str:
        return str(self.directory / name)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "barnabas.store.ssl.ca": self.file("ca.crt"),
            "barnabas.store.ssl.certificate": self.file("client.crt"),
            "barnabas.store.ssl.key": self.file("client.key"),
        }


def openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory = tmp_path_factory.mktemp("certificates")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(directory, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=CA")
    # etcd's gateway uses the server's certificate as a client of the member itself
    (directory / "extensions").write_text(
        "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n"
    )
    for name in ("server", "client"):
        request = ["req", "-new", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr"]
        openssl(directory, *request, "-subj", f"/O={name}")
        signing = [
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
        ]
        openssl(directory, *signing, "-extfile", "extensions", "-out", f"{name}.crt")
    openssl(directory, "genrsa", "-out", "token.key", "2048")
    openssl(directory, "rsa", "-in", "token.key", "-pubout", "-out", "token.pub")
    return Certificates(directory)


@pytest.fixture(scope="module")
def secured(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[etcd.Member]]:
    keys = f"pub-key={certificates.file('token.pub')},priv-key={certificates.file('token.key')}"
    token = f"jwt,{keys},sign-method=RS256,ttl={TOKEN_TTL_S}s"
    settings = (
        f"--cert-file={certificates.file('server.crt')}",
        f"--key-file={certificates.file('server.key')}",
        f"--trusted-ca-file={certificates.file('ca.crt')}",
        "--client-cert-auth",
        f"--auth-token={token}",
    )
    with etcd.running(tmp_path_factory.mktemp("etcd"), settings=settings, scheme="https") as members:
        on_loop(enable_authentication)(members, certificates)
        yield members


async def enable_authentication(members: list[etcd.Member], certificates: Certificates) -> None:
    gateway = gateway_of(members, certificates)
    for name in ("root", USER):
        await gateway.call("/v3/auth/user/add", {"name": name, "password": PASSWORD})
        await gateway.call("/v3/auth/role/add", {"name": name})
        await gateway.call("/v3/auth/user/grant", {"user": name, "role": name})
    permission = {"permType": "READWRITE", "key": encode("own/"), "range_end": encode("own0")}
    await gateway.call("/v3/auth/role/grant", {"name": USER, "perm": permission})
    await gateway.call("/v3/auth/enable", {})
    gateway.close()


def gateway_of(
    members: list[etcd.Member], certificates: Certificates, credentials: Credentials | None = None
) -> Gateway:
    tls = ssl.create_default_context(cafile=certificates.file("ca.crt"))
    tls.load_cert_chain(certificates.file("client.crt"), certificates.file("client.key"))
    return Gateway(parse_etcd_url(etcd.url(members, scheme="etcds")).endpoints, tls, credentials)


@asynccontextmanager
async def opened(members: list[etcd.Member], prefix: str, settings: dict[str, str]) -> AsyncIterator[Store]:
    url = etcd.url(members, scheme="etcds", prefix=prefix)
    given = [f"{key}={value}" for key, value in {"barnabas.store": url, **settings}.items()]
    config = load_broker_config(file={}, environment={}, settings=given).config
    shutdown = Shutdown()
    try:
        yield open_store(config, SystemClock(), shutdown)
    finally:
        await shutdown.run()


LOGIN = {"barnabas.store.user": USER, "barnabas.store.password": PASSWORD}


@on_loop
async def test_a_user_works_over_tls_also_after_the_token_has_expired(
    secured: list[etcd.Member], certificates: Certificates
) -> None:
    async with opened(secured, "own/a", {**certificates.settings, **LOGIN}) as store:
        commits = store.watch(0)
        assert await store.commit({}, (StoreChange("a", b"1"),)) == 1
        assert await store.open_session("sessions/1", b"one") == 2
        await asyncio.sleep(TOKEN_TTL_S + 1)  # JWT counts whole seconds
        assert await store.commit({"a": 1}, (StoreChange("a", b"2"),)) == 3
        assert [commit.revision for commit in await take(commits, 3)] == [1, 2, 3]
        assert (await store.load())[1] == [Item("a", b"2", 3), Item("sessions/1", b"one", 2)]
        await commits.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("prefix", "changed", "message"),
    [
        ("others", {}, "permission denied: the user in barnabas.store.user"),
        ("own/b", {"barnabas.store.password": "wrong"}, "authentication failed"),
        ("own/b", {"barnabas.store.user": ""}, "barnabas.store.user"),
        ("own/b", {"barnabas.store.ssl.ca": ""}, "CERTIFICATE_VERIFY_FAILED"),
        ("own/b", {"barnabas.store.ssl.certificate": ""}, "no endpoint of etcd answers"),
    ],
)
def test_what_etcd_does_not_accept_is_reported(
    secured: list[etcd.Member],
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    prefix: str,
    changed: dict[str, str],
    message: str,
) -> None:
    monkeypatch.setattr("barnabas.stores.etcd_gateway.RETRY_TIMEOUT_S", 0.0)

    @on_loop
    async def scenario() -> None:
        async with opened(secured, prefix, {**certificates.settings, **LOGIN, **changed}) as store:
            with pytest.raises(StoreError, match=message):
                await store.load()

    scenario()
