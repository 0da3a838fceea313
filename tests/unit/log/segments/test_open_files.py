import pytest

from barnabas.log.segments.open_files import OpenFiles, maps_max


class FakeOwner:
    def __init__(self) -> None:
        self.recently_used = False
        self.closed = False
        self.fails = False
        self.failures: list[OSError] = []

    def close_files(self) -> None:
        self.closed = True
        if self.fails:
            raise OSError(28, "No space left on device")

    def failed(self, error: OSError) -> None:
        self.failures.append(error)


def test_the_oldest_owner_that_was_not_used_since_is_closed() -> None:
    files = OpenFiles(2)
    first, second, third = FakeOwner(), FakeOwner(), FakeOwner()
    files.opened(first)
    files.opened(second)
    first.recently_used = True
    files.opened(third)
    assert [item.closed for item in (first, second, third)] == [False, True, False]
    assert len(files) == 2


def test_a_used_owner_gets_a_second_chance_only_once() -> None:
    files = OpenFiles(1)
    first, second = FakeOwner(), FakeOwner()
    first.recently_used = True
    files.opened(first)
    files.opened(second)
    assert first.closed
    assert not second.closed


def test_an_owner_that_is_opened_again_is_never_closed_for_itself() -> None:
    files = OpenFiles(2)
    first, second = FakeOwner(), FakeOwner()
    for owner in (first, second, first):
        files.opened(owner)
    assert not first.closed
    assert not second.closed
    assert len(files) == 2


def test_an_owner_that_closes_itself_is_removed() -> None:
    files = OpenFiles(2)
    first = FakeOwner()
    files.opened(first)
    files.closed(first)
    files.closed(first)
    assert len(files) == 0


def test_a_close_error_is_reported_to_the_closed_owner_only() -> None:
    files = OpenFiles(1)
    first, second = FakeOwner(), FakeOwner()
    first.fails = True
    files.opened(first)
    files.opened(second)
    assert [error.errno for error in first.failures] == [28]
    assert second.failures == []
    assert len(files) == 1


@pytest.mark.parametrize(("files", "maps"), [(1024, 512), (16_384, 2_048), (1 << 20, 16_384), (None, 16_384)])
def test_there_are_fewer_maps_than_files(files: int | None, maps: int) -> None:
    assert maps_max(files) == maps
