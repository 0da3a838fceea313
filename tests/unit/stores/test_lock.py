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
