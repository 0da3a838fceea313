"""Which files are joined."""

from barnabas.tables.maintenance import files_to_join
from barnabas.tables.table import TableFile

KIB, MIB = 1024, 1024 * 1024
TARGET = 128 * MIB


def files(*sizes: int) -> list[TableFile]:
    return [TableFile(f"{index}", size, 10, index, index) for index, size in enumerate(sizes)]


def sizes_of(groups: list[list[TableFile]]) -> list[list[int]]:
    return [[file.size_bytes for file in group] for group in groups]


def test_few_small_files_are_left_alone() -> None:
    assert files_to_join(files(*[KIB] * 7), TARGET) == []


def test_many_small_files_become_one() -> None:
    assert sizes_of(files_to_join(files(*[KIB] * 9), TARGET)) == [[KIB] * 9]


def test_files_of_the_target_size_are_left_alone() -> None:
    assert files_to_join(files(*[TARGET] * 50), TARGET) == []


def test_only_files_of_one_size_are_joined() -> None:
    """So a row is written again once for each size, and not with each new file."""
    found = files_to_join(files(90 * MIB, 10 * MIB, *[KIB] * 8), TARGET)
    assert sizes_of(found) == [[KIB] * 8]


def test_files_are_joined_in_the_order_of_their_records_up_to_the_size() -> None:
    found = files_to_join(files(*[60 * MIB] * 9), TARGET)
    assert sizes_of(found) == [[60 * MIB] * 3] * 3
    assert [file.path for group in found for file in group] == [str(index) for index in range(9)]


def test_each_row_is_written_few_times() -> None:
    """As many files as a year of minutes has, in a small table."""
    present: list[TableFile] = []
    written_bytes = 0
    for minute in range(20_000):
        present.append(TableFile(f"{minute}", 10 * KIB, 1, minute, minute))
        if minute % 8:
            continue
        for group in files_to_join(present, TARGET):
            size = sum(file.size_bytes for file in group)
            written_bytes += size
            paths = {file.path for file in group}
            present = [file for file in present if file.path not in paths]
            present.append(TableFile(f"joined-{minute}", size, 1, group[0].lowest_ms, minute))
    assert len(present) < 40
    assert written_bytes / (20_000 * 10 * KIB) < 12
