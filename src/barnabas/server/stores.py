"""Opens the metadata store that the configuration names."""

from pathlib import Path

from barnabas.base.clock import Clock
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.metadata.store import Store
from barnabas.net.listener import StartError
from barnabas.server.shutdown import Shutdown
from barnabas.stores.lock import StoreLock
from barnabas.stores.sqlite import SqliteStore

STORE_KEY = "barnabas.store"
SQLITE_SCHEME = "sqlite:"
ETCD_SCHEMES = ("etcd://", "etcds://")

#: The file of the embedded store, in `metadata.log.dir` or the first log directory.
STORE_FILE = "metadata.sqlite"


def metadata_directory(config: BrokerConfig) -> Path:
    """Return the directory of the embedded store."""
    return Path(config.text_or_none("metadata.log.dir") or config.log_dirs[0])


def open_store(config: BrokerConfig, clock: Clock, shutdown: Shutdown) -> Store:
    """Return the store, and add its closing to `shutdown`.

    :raises ConfigError: If `barnabas.store` or one of its settings is not valid.
    :raises StartError: If the file cannot be created.
    :raises StoreError: If the store is in use.
    """
    url = config.text(STORE_KEY)
    if not url:
        return _open_sqlite(metadata_directory(config) / STORE_FILE, config, clock, shutdown, is_shared=False)
    if url.startswith(ETCD_SCHEMES):
        from barnabas.server.etcd_store import open_etcd  # only here: others need not import its modules

        return open_etcd(config, url, clock, shutdown)
    if not url.startswith(SQLITE_SCHEME) or url == SQLITE_SCHEME:
        raise ConfigError(
            STORE_KEY,
            url,
            "must be empty, sqlite:FILE, etcd://HOST:PORT,HOST:PORT, or etcds:// for TLS; for example "
            "sqlite:data/metadata.sqlite",
        )
    path = Path(url.removeprefix(SQLITE_SCHEME))
    return _open_sqlite(path, config, clock, shutdown, is_shared=True)


def _open_sqlite(
    path: Path, config: BrokerConfig, clock: Clock, shutdown: Shutdown, *, is_shared: bool
) -> SqliteStore:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)  # it contains credentials
    except OSError as error:
        message = (
            f"Directory {path.parent} cannot be written to: {error.strerror}. Choose another with --data."
        )
        raise StartError(message) from error
    shutdown.add(StoreLock(path.parent, is_shared=is_shared).release)
    store = SqliteStore(
        path,
        is_shared=is_shared,
        session_timeout_ms=config.integer("broker.session.timeout.ms"),
        clock=clock,
    )
    shutdown.add_async(store.close)
    return store
