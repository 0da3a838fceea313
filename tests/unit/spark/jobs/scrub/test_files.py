"""Files damaged on purpose: each damage is found, and reported with offsets, file and position."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import CLEANER_OFFSET_FILE, write_offsets
from barnabas.log.files import offset_file
from barnabas.log.segments.offset_index import OffsetIndex
from barnabas.log.segments.time_index import TimeIndex
from barnabas.wire.records.batch import assign, iterate_headers, read_header
from pyspark_barnabas.jobs.scrub.batch_checks import Scrubbed
from pyspark_barnabas.jobs.scrub.files import scrub_partition
from support.batches import NOW_MS, batch

TP = TopicPartition("orders", 0)


def placed(base_offset: int, count: int = 3, **options: object) -> bytearray:
    one = bytearray(
        batch(*(b"%d" % number for number in range(count)), timestamp_ms=NOW_MS + base_offset, **options)
    )
    assign(one, base_offset, read_header(one).batch_length, 0)
    return one


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Write two segments of four batches of three records, of one producer, with indexes."""
    path = tmp_path / str(TP)
    path.mkdir()
    for base_offset in (0, 12):
        batches = [
            placed(offset, producer_id=7, producer_epoch=0, base_sequence=offset)
            for offset in range(base_offset, base_offset + 12, 3)
        ]
        write(path, base_offset, batches)
    return path


def write(directory: Path, base_offset: int, batches: list[bytearray]) -> None:
    index = OffsetIndex(offset_file(directory, base_offset, ".index"), base_offset)
    times = TimeIndex(offset_file(directory, base_offset, ".timeindex"), base_offset)
    index.clear()
    times.clear()
    position = 0
    for one in batches:
        header = read_header(one)
        if position:
            index.append(header.last_offset, position)
            times.append(header.max_timestamp, header.last_offset)
        position += len(one)
    index.save()
    times.save()
    offset_file(directory, base_offset, ".log").write_bytes(b"".join(batches))


def scrubbed(directory: Path, end: int = 24, **options: bool) -> Scrubbed:
    return scrub_partition(TP, directory, end, pause=lambda _: None, **options)


def found(directory: Path, end: int = 24, **options: bool) -> list[tuple[str, int, int, str, int]]:
    findings = scrubbed(directory, end, **options).findings
    assert all((each.topic, each.partition) == TP for each in findings)
    return [
        (each.kind, each.first_offset, each.last_offset, Path(each.file).name, each.position)
        for each in findings
    ]


def segment(directory: Path, base_offset: int = 0) -> tuple[Path, bytearray, list[int]]:
    path = offset_file(directory, base_offset, ".log")
    data = bytearray(path.read_bytes())
    return path, data, [position for position, _ in iterate_headers(data)]


FIRST, SECOND = f"{0:020d}.log", f"{12:020d}.log"


def test_valid_files_have_no_findings_and_are_counted(directory: Path) -> None:
    report = scrubbed(directory)
    sizes = sum(path.stat().st_size for path in directory.glob("*.log"))
    assert report == Scrubbed(*TP, 2, 8, 24, sizes, 0, 24)


@pytest.mark.parametrize("bit", [0, 4, 7])
@pytest.mark.parametrize("behind", [17, 20, 23, 30, 45, 60, 65])  # CRC, attributes, ..., records
def test_a_flipped_bit_is_one_finding_of_its_batch(directory: Path, bit: int, behind: int) -> None:
    path, data, positions = segment(directory)
    data[positions[2] + behind] ^= 1 << bit
    path.write_bytes(data)
    [finding] = scrubbed(directory).findings
    assert finding.kind == "crc"
    assert (finding.first_offset, finding.position) == (6, positions[2])
    assert scrubbed(directory).findings_count == 1


def test_a_flipped_bit_in_the_last_batch_is_found(directory: Path) -> None:
    path, data, positions = segment(directory, 12)
    data[-1] ^= 1
    path.write_bytes(data)
    assert found(directory) == [("crc", 21, 23, SECOND, positions[3])]


def test_an_invalid_length_ends_only_its_segment(directory: Path) -> None:
    path, data, positions = segment(directory)
    data[positions[1] + 8 : positions[1] + 12] = bytes(4)
    path.write_bytes(data)
    assert found(directory) == [("unreadable", 3, 11, FIRST, positions[1])]


def test_truncation_is_found_within_a_batch_and_between_batches(directory: Path) -> None:
    path, data, positions = segment(directory, 12)
    path.write_bytes(data[:-5])
    assert found(directory) == [("cut", 21, 23, SECOND, positions[3])]
    path.write_bytes(data[: positions[3]])
    kinds = found(directory)
    assert ("cut", 21, 23, SECOND, positions[3]) in kinds
    assert {each[0] for each in kinds} <= {"cut", "index", "timeindex"}


def test_truncation_within_the_log_is_found(directory: Path) -> None:
    path, data, positions = segment(directory)
    path.write_bytes(data[:-5])
    assert found(directory) == [("cut", 9, 11, FIRST, positions[3])]


def test_records_being_appended_after_the_end_are_not_damage(directory: Path) -> None:
    path, data, positions = segment(directory, 12)
    path.write_bytes(data[:-5])
    assert found(directory, 21) == []
    path.write_bytes(bytes(data[: positions[3]]) + bytes(500))
    assert found(directory, 21) == []


def test_swapped_batches_are_found(directory: Path) -> None:
    path, data, at = segment(directory)
    size_bytes = at[2] - at[1]
    assert at[3] - at[2] == size_bytes
    data[at[1] : at[3]] = data[at[2] : at[3]] + data[at[1] : at[2]]
    path.write_bytes(data)
    kinds = found(directory)
    assert ("gap", 3, 5, FIRST, at[1]) in kinds
    assert ("order", 3, 5, FIRST, at[2]) in kinds
    assert {each[0] for each in kinds} <= {"gap", "order", "index"}


@pytest.mark.parametrize(("offset", "position"), [(5, 1), (4, None), (11, -1), (5, 1 << 20)])
def test_a_wrong_index_entry_is_found(directory: Path, offset: int, position: int | None) -> None:
    _, _, positions = segment(directory)
    index = OffsetIndex(offset_file(directory, 0, ".index"), 0)
    index.clear()
    index.append(2, 0)
    index.append(offset, positions[1] if position is None else position)
    index.save()
    assert found(directory) == [("index", offset, offset, f"{0:020d}.index", 8)]


def test_a_wrong_time_index_entry_is_found(directory: Path) -> None:
    times = TimeIndex(offset_file(directory, 0, ".timeindex"), 0)
    times.clear()
    times.append(NOW_MS, 8)  # which is later
    times.append(NOW_MS + 100, 20)  # which is in another segment
    times.save()
    name = f"{0:020d}.timeindex"
    assert found(directory) == [("timeindex", 8, 8, name, 0), ("timeindex", 20, 20, name, 12)]


def test_a_gap_in_a_producers_sequence_is_found(directory: Path) -> None:
    batches = [
        placed(0, producer_id=7, producer_epoch=0, base_sequence=0),
        placed(3, producer_id=7, producer_epoch=0, base_sequence=4),
        placed(6, producer_id=7, producer_epoch=1, base_sequence=0),
        placed(9, producer_id=7, producer_epoch=0, base_sequence=7),
    ]
    write(directory, 0, batches)
    offset_file(directory, 12, ".log").unlink()
    _, _, at = segment(directory)
    assert found(directory, 12) == [("sequence", 3, 5, FIRST, at[1]), ("sequence", 9, 11, FIRST, at[3])]


def test_sequences_wrap(directory: Path) -> None:
    top = (1 << 31) - 3
    write(directory, 0, [placed(0, producer_id=1, producer_epoch=0, base_sequence=top)])
    write(directory, 3, [placed(3, producer_id=1, producer_epoch=0, base_sequence=0)])
    offset_file(directory, 12, ".log").unlink()
    assert found(directory, 6) == []


def test_gaps_are_valid_only_where_the_cleaner_has_run(directory: Path) -> None:
    _, data, at = segment(directory)
    write(directory, 0, [data[at[0] : at[1]], data[at[3] :]])
    assert found(directory) == [("gap", 3, 8, FIRST, at[1])]
    assert found(directory, allow_gaps=True) == []
    checkpoint = directory.parent / CLEANER_OFFSET_FILE
    write_offsets(checkpoint, {TP: 9})
    assert found(directory) == []
    write_offsets(checkpoint, {TP: 6})
    assert found(directory) == [("gap", 3, 8, FIRST, at[1])]


def test_an_unwritten_checkpoint_is_ignored_and_a_damaged_one_found(directory: Path) -> None:
    checkpoint = directory.parent / CLEANER_OFFSET_FILE
    checkpoint.touch()
    assert found(directory) == []
    checkpoint.write_text("nonsense")
    assert found(directory) == [("checkpoint", 0, 23, CLEANER_OFFSET_FILE, 0)]


def test_a_missing_segment_is_a_gap(directory: Path) -> None:
    write(directory, 24, [placed(24)])
    offset_file(directory, 12, ".log").unlink()
    assert found(directory, 27) == [("gap", 12, 23, f"{24:020d}.log", 0)]


def test_files_replaced_meanwhile_are_read_again(directory: Path) -> None:
    path, data, _ = segment(directory)
    path.write_bytes(data[:-5])
    report = scrub_partition(TP, directory, 24, pause=lambda _: path.write_bytes(data))
    assert report.findings == []


def test_a_batch_of_many_megabytes_is_checked(tmp_path: Path) -> None:
    large = bytearray(batch(b"x" * (20 << 20)))
    offset_file(tmp_path, 0, ".log").write_bytes(large)
    assert found(tmp_path, 1) == []
    large[-1] ^= 1
    offset_file(tmp_path, 0, ".log").write_bytes(large)
    assert found(tmp_path, 1) == [("crc", 0, 0, FIRST, 0)]
