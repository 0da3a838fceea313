from barnabas.log.open_files import OpenFiles


class Opened:
    def __init__(self) -> None:
        self.used = False
        self.closed = False

    def close_files(self) -> None:
        self.closed = True


def test_the_oldest_that_was_not_used_since_is_closed() -> None:
    files = OpenFiles(2)
    first, second, third = Opened(), Opened(), Opened()
    files.opened(first)
    files.opened(second)
    first.used = True
    files.opened(third)
    assert [item.closed for item in (first, second, third)] == [False, True, False]
    assert len(files) == 2


def test_a_second_chance_is_not_a_third() -> None:
    files = OpenFiles(1)
    first, second = Opened(), Opened()
    first.used = True
    files.opened(first)
    files.opened(second)
    assert first.closed
    assert not second.closed


def test_who_closes_itself_is_forgotten() -> None:
    files = OpenFiles(2)
    first = Opened()
    files.opened(first)
    files.closed(first)
    files.closed(first)
    assert len(files) == 0
