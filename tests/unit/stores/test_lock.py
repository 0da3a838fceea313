from pathlib import Path

import pytest

from barnabas.metadata.store import StoreError
from barnabas.stores.lock import StoreLock


def test_one_broker_at_a_time_holds_a_store(tmp_path: Path) -> None:
    first = StoreLock(tmp_path)
    with pytest.raises(StoreError, match=r"in use by another broker, which holds metadata\.lock"):
        StoreLock(tmp_path)
    first.release()
    StoreLock(tmp_path).release()


def test_brokers_that_share_a_store_keep_out_one_that_does_not(tmp_path: Path) -> None:
    sharing = [StoreLock(tmp_path, is_shared=True) for _ in range(2)]
    with pytest.raises(StoreError, match="in use by another broker"):
        StoreLock(tmp_path)
    for lock in sharing:
        lock.release()
    StoreLock(tmp_path).release()
