from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.log.leader_epoch_cache import LeaderEpochs, open_epochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(tmp_path)
    for epoch, start_offset in ((2, 6), (3, 8), (5, 20)):
        epochs.assign(epoch, start_offset)
    return epochs


def test_the_file_is_a_checkpoint_that_kafka_reads(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n2 6\n3 8\n5 20\n"
    assert LeaderEpochs(tmp_path).entries == ((2, 6), (3, 8), (5, 20))


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 6)), (2, (2, 8)), (3, (3, 20)), (4, (3, 20)), (5, (5, 30)), (6, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_begins(
    epochs: LeaderEpochs, epoch: int, expected: tuple[int, int]
) -> None:
    assert epochs.end_offset_for(epoch, 30) == expected


def test_an_empty_log_has_no_epoch(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path)
    assert epochs.latest is None
    assert epochs.end_offset_for(0, 0) == (-1, -1)
    assert epochs.epoch_at(0) is None


@pytest.mark.parametrize(("offset", "epoch"), [(5, None), (6, 2), (7, 2), (8, 3), (19, 3), (20, 5), (99, 5)])
def test_the_epoch_of_an_offset_is_found(epochs: LeaderEpochs, offset: int, epoch: int | None) -> None:
    assert epochs.epoch_at(offset) == epoch


def test_the_same_epoch_again_changes_nothing(epochs: LeaderEpochs) -> None:
    epochs.assign(5, 25)
    assert epochs.entries == ((2, 6), (3, 8), (5, 20))


def test_a_new_epoch_removes_entries_that_contradict_it(epochs: LeaderEpochs) -> None:
    epochs.assign(4, 8)
    assert epochs.entries == ((2, 6), (4, 8))
    epochs.assign(4, 7)
    assert epochs.entries == ((2, 6), (4, 7))


@pytest.mark.parametrize(("end_offset", "left"), [(21, 3), (20, 2), (9, 2), (8, 1), (7, 1), (6, 0), (0, 0)])
def test_truncation_from_the_end_removes_epochs_that_begin_there(
    epochs: LeaderEpochs, tmp_path: Path, end_offset: int, left: int
) -> None:
    epochs.truncate_from_end(end_offset)
    assert len(epochs.entries) == left
    assert LeaderEpochs(tmp_path).entries == epochs.entries


@pytest.mark.parametrize(
    ("start_offset", "entries"),
    [
        (5, ((2, 6), (3, 8), (5, 20))),
        (6, ((2, 6), (3, 8), (5, 20))),
        (7, ((2, 7), (3, 8), (5, 20))),
        (8, ((3, 8), (5, 20))),
        (19, ((3, 19), (5, 20))),
        (40, ((5, 40),)),
    ],
)
def test_truncation_from_the_start_moves_the_first_epoch(
    epochs: LeaderEpochs, tmp_path: Path, start_offset: int, entries: tuple[tuple[int, int], ...]
) -> None:
    epochs.truncate_from_start(start_offset)
    assert epochs.entries == entries
    assert LeaderEpochs(tmp_path).entries == entries


def test_clearing_and_flushing_reach_the_file(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.clear()
    epochs.flush()
    assert LeaderEpochs(tmp_path).entries == ()


def test_a_damaged_file_is_kept_until_all_epochs_are_known_and_then_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("nonsense")
    flushed: list[Path] = []
    monkeypatch.setattr(disk, "sync_path", flushed.append)
    epochs = open_epochs(tmp_path)
    for epoch, start_offset in ((2, 6), (3, 8)):
        epochs.assign(epoch, start_offset)
        assert (epochs.is_damaged, path.read_text()) == (True, "nonsense")
    epochs.recovered()
    assert (epochs.is_damaged, path.read_text()) == (False, "0\n2\n2 6\n3 8\n")
    assert path in flushed
    epochs.assign(5, 20)
    assert LeaderEpochs(tmp_path).entries == ((2, 6), (3, 8), (5, 20))
