from collections.abc import Callable

from barnabas.log.append_info import AppendInfo
from barnabas.log.closing import close_log, is_synced
from barnabas.log.partition_log import PartitionLog

OpenLog = Callable[..., PartitionLog]
Produce = Callable[..., AppendInfo]


def test_closing_leaves_nothing_to_recover(open_log: OpenLog, produce: Produce) -> None:
    log = open_log(segment_bytes=300)
    for _ in range(5):
        produce(log, b"x" * 100)
    close_log(log)
    assert log.recovery_point == 5
    assert len(log.local._open_files) == 0
    again = open_log(clean_shutdown=True)
    assert (again.recovery_point, again.log_end_offset) == (5, 5)


def test_a_log_without_records_behind_its_recovery_point_is_not_synced_while_a_cut_is_not(
    open_log: OpenLog, produce: Produce
) -> None:
    log = open_log()
    produce(log, b"a")
    log.flush()
    assert is_synced(log)
    log.truncate_to(0)
    assert log.recovery_point == log.log_end_offset == 0
    assert not is_synced(log), "a power failure may undo the cut"
    log.flush()
    assert is_synced(log)
