from pathlib import Path

import pytest

from barnabas.net.connections import NO_BOUND
from barnabas.server.listeners import FILES_RESERVED, connection_limits
from support.nodes import config_of


@pytest.mark.parametrize(
    ("configured", "files_max", "count_max"),
    [
        (None, None, NO_BOUND),
        (None, 20_000, 20_000 - FILES_RESERVED),
        (None, 300, 150),
        (100, 300, 100),
        (100, None, 100),
    ],
)
def test_the_connection_limit_leaves_file_descriptors_for_logs(
    tmp_path: Path, configured: int | None, files_max: int | None, count_max: int
) -> None:
    settings = {} if configured is None else {"max_connections": str(configured)}
    assert connection_limits(config_of(tmp_path, **settings), files_max).count_max == count_max
