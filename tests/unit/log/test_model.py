"""Random operations on a log compared with a list as the model."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.closing import close_log
from barnabas.log.log_config import LogConfig
from barnabas.log.offset_lookup import search_timestamp
from barnabas.log.open_log import open_log
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.timestamps import run_search
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.record import Record, decode_all, encode_batch

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_bytes=2_000, retention_ms=-1)


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.model: dict[int, tuple[int, bytes]] = {}
        self.epoch = 0
        self.start = self.end = 0
        self.open(clean=False)

    def open(self, *, clean: bool) -> None:
        self.log = open_log(
            Path(self.home.name) / "t-0",
            TopicPartition("t", 0),
            config=CONFIG,
            clock=self.clock,
            log_start_offset=self.start,
            clean_shutdown=clean,
            open_files=OpenFiles(2),
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def teardown(self) -> None:
        self.log.local.abandon()
        self.home.cleanup()

    @rule(values=st.lists(st.binary(max_size=120), min_size=1, max_size=4), new_epoch=st.booleans())
    def append(self, values: list[bytes], new_epoch: bool) -> None:
        self.epoch += new_epoch
        self.clock.advance(7)
        records = [Record(0, self.clock.now_ms + index, None, value) for index, value in enumerate(values)]
        info = self.log.append_as_leader(memoryview(encode_batch(records)), self.epoch)
        assert info.first_offset == self.end
        for record in records:
            self.model[self.end] = (record.timestamp_ms, record.value or b"")
            self.end += 1
        self.log.update_high_watermark(self.end)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        target = max(self.end - back, self.start)
        batch_starts = {offset for offset, _ in self.batches()}
        while target < self.end and target not in batch_starts:
            target -= 1
        self.log.truncate_to(target)
        self.end = target
        self.start = min(self.start, target)
        self.model = {offset: record for offset, record in self.model.items() if offset < target}

    def batches(self) -> list[tuple[int, int]]:
        return [
            (header.base_offset, header.next_offset)
            for segment in self.log.segments
            for _, header in segment.headers()
        ]

    @rule(forward=st.integers(0, 6))
    def delete_records(self, forward: int) -> None:
        self.start = min(self.start + forward, self.end)
        self.log.increment_log_start_offset(self.start)

    @rule()
    def delete_old_segments(self) -> None:
        for path in self.log.delete_old_segments(self.clock.wall_ms()):
            path.unlink()
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        assert self.log.size_bytes <= CONFIG.retention_bytes + CONFIG.segment_bytes

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            close_log(self.log)
        else:
            self.log.local.abandon()
        self.open(clean=clean)

    @rule(data=st.data(), max_bytes=st.sampled_from([0, 70, 400, 100_000]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        bound = data.draw(st.integers(offset, self.end))
        log_slice = self.log.read(offset, max_bytes, bound, min_one_batch=True)
        records = [record for record in decode_all(log_slice.data) if record.offset >= offset]
        assert [record.offset for record in records] == list(range(offset, offset + len(records)))
        assert all(self.model[record.offset] == (record.timestamp_ms, record.value) for record in records)
        if any(start >= offset and following <= bound for start, following in self.batches()):
            assert records, "a whole batch below the bound is always readable"
        assert all(record.offset < bound for record in records)

    @rule(data=st.data())
    def find_time(self, data: st.DataObject) -> None:
        timestamp_ms = data.draw(st.integers(self.clock.now_ms - 100, self.clock.now_ms + 5))
        alive = [(offset, self.model[offset][0]) for offset in range(self.start, self.end)]
        expected = next(((stamp, offset) for offset, stamp in alive if stamp >= timestamp_ms), None)
        match = run_search(search_timestamp(self.log, timestamp_ms))
        assert (match and match[:2]) == expected

    @invariant()
    def offsets_agree(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        assert log.recovery_point <= log.log_end_offset
        assert len(log.local._open_files) <= 2
        epochs = log.epochs.entries
        assert list(epochs) == sorted(epochs)

    @invariant()
    def reading_below_the_start_is_out_of_range(self) -> None:
        try:
            self.log.read(self.start - 1, 100, self.end)
        except KafkaError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                return
        raise AssertionError(self.start)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=30, stateful_step_count=25)
