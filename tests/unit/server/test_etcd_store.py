from pathlib import Path

import pytest

from barnabas.base.clock import SystemClock
from barnabas.config.definition import ConfigError
from barnabas.config.load import load_broker_config
from barnabas.server.shutdown import Shutdown
from barnabas.server.stores import open_store
from barnabas.stores.etcd import EtcdStore
from support.loop import on_loop


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
    ("changed", "key"),
    [
        ({"barnabas.store": "etcd://h:x"}, "barnabas.store"),
        ({"barnabas.store.ssl.ca": "FILE"}, "barnabas.store.ssl.ca"),
        ({"barnabas.store.ssl.ca": "missing.crt"}, "barnabas.store.ssl.ca"),
        ({"barnabas.store.ssl.certificate": "FILE"}, "barnabas.store.ssl.certificate"),
        ({"barnabas.store.ssl.certificate": "missing.crt"}, "barnabas.store.ssl.certificate"),
    ],
)
def test_a_setting_that_is_not_valid_is_named(tmp_path: Path, changed: dict[str, str], key: str) -> None:
    (tmp_path / "file").write_text("not a certificate")
    settings = {name: value.replace("FILE", str(tmp_path / "file")) for name, value in changed.items()}

    @on_loop
    async def scenario() -> None:
        with pytest.raises(ConfigError, match=f"Invalid value '{settings[key]}' for {key}: "):
            await open_with({"barnabas.store": "etcds://h:1", **settings})

    scenario()
