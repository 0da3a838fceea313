from pathlib import Path

import pytest

from barnabas.base.clock import SystemClock
from barnabas.config.definition import ConfigError
from barnabas.config.load import load_broker_config
from barnabas.server.shutdown import Shutdown
from barnabas.server.stores import open_store
from barnabas.stores.etcd import EtcdStore
from support.loop import on_loop
from support.tls import AUTHORITY

KEYSTORE, TRUSTSTORE = "barnabas.store.ssl.keystore.", "barnabas.store.ssl.truststore."


async def open_with(settings: dict[str, str]) -> object:
    given = [f"{key}={value}" for key, value in settings.items()]
    shutdown = Shutdown()
    try:
        config = load_broker_config(file={}, environment={}, settings=given).config
        return open_store(config, SystemClock(), shutdown)
    finally:
        await shutdown.run()


@on_loop
async def test_a_store_in_etcd_is_opened_before_etcd_runs() -> None:
    store = await open_with({"barnabas.store": "etcd://127.0.0.1:1,127.0.0.1:2/prefix"})
    assert isinstance(store, EtcdStore)
    assert set(store.statistics().values()) == {0}


@pytest.mark.parametrize(
    ("changed", "key", "reason"),
    [
        ({"barnabas.store": "etcd://h:x"}, "barnabas.store", "'h:x' is not an endpoint"),
        (
            {"barnabas.store": "etcd://h:1", f"{TRUSTSTORE}location": "FILE"},
            "barnabas.store",
            f"must begin with etcds:// because {TRUSTSTORE}location is set",
        ),
        ({f"{TRUSTSTORE}location": "FILE"}, f"{TRUSTSTORE}location", f"that {TRUSTSTORE}password opens"),
        ({f"{TRUSTSTORE}location": "missing.crt"}, f"{TRUSTSTORE}location", "cannot be read"),
        ({f"{KEYSTORE}location": "missing.pem"}, f"{KEYSTORE}location", "cannot be read"),
        ({f"{KEYSTORE}location": "FILE", f"{KEYSTORE}type": "PEM"}, f"{KEYSTORE}location", "a PEM file"),
        ({f"{KEYSTORE}type": "JCEKS"}, f"{KEYSTORE}type", "must be PEM, PKCS12 or JKS"),
        (
            {"barnabas.store.ssl.enabled.protocols": "TLSv1"},
            "barnabas.store.ssl.enabled.protocols",
            "must be among TLSv1.2, TLSv1.3",
        ),
    ],
)
def test_a_setting_that_is_not_valid_is_named(
    tmp_path: Path, changed: dict[str, str], key: str, reason: str
) -> None:
    (tmp_path / "file").write_text("not a certificate")
    settings = {name: value.replace("FILE", str(tmp_path / "file")) for name, value in changed.items()}

    @on_loop
    async def scenario() -> None:
        with pytest.raises(ConfigError) as refused:
            await open_with({"barnabas.store": "etcds://h:1", **settings})
        assert str(refused.value).startswith(f"Invalid value '{settings[key]}' for {key}: ")
        assert reason in str(refused.value)

    scenario()


@on_loop
async def test_a_key_without_its_certificate_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError, match=f"set together with {KEYSTORE}certificate.chain") as refused:
        await open_with({"barnabas.store": "etcds://h:1", f"{KEYSTORE}key": AUTHORITY.issue().key_pem()})
    assert "PRIVATE KEY" not in str(refused.value)
