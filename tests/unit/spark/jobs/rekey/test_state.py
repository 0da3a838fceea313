"""The state of a copy: read back completely or not at all, by one run at a time."""

from pathlib import Path

import pytest

from pyspark_barnabas.jobs.rekey.order import CopyStep, Homes, RekeyError
from pyspark_barnabas.jobs.rekey.state import Copying, RekeyDirectory

STATE = Copying(
    "orders",
    "ab" * 16,
    "orders-6",
    "rekey-1",
    Homes((2, 4), 6),
    True,
    {"retention.ms": "1000", "cleanup.policy": None},
    {0: 0, 1: 5},
    {0: 100, 1: 50, 11: 7},
    [CopyStep(0, ((0, 0, 50), (1, 5, 50))), CopyStep(1, ((0, 50, 100),))],
    [{0: 0, 1: 0}],
    1,
    target_id="cd" * 16,
)


def test_a_state_round_trips(tmp_path: Path) -> None:
    store = RekeyDirectory(tmp_path)
    assert store.read() is None
    store.write(STATE)
    assert store.read() == STATE
    assert [each.name for each in tmp_path.iterdir()] == ["rekey.json"]


def test_a_partly_written_state_is_ignored(tmp_path: Path) -> None:
    store = RekeyDirectory(tmp_path)
    store.write(STATE)
    (tmp_path / "rekey.json.new").write_text('{"version": 1, "sou')
    assert store.read() == STATE


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 3}', "nonsense"])
def test_a_damaged_state_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "rekey.json").write_text(text)
    with pytest.raises(RekeyError, match=r"rekey\.json is not a valid state file of a copy"):
        RekeyDirectory(tmp_path).read()


def test_one_run_at_a_time_uses_a_directory(tmp_path: Path) -> None:
    store = RekeyDirectory(tmp_path / "made")
    with (
        store.locked(),
        pytest.raises(RekeyError, match="another run is using"),
        RekeyDirectory(store.directory).locked(),
    ):
        pass
    with store.locked():
        pass
