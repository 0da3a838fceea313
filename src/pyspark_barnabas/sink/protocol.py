"""The protocol by which a batch of many transactions is committed exactly once, whatever fails. No IO.

A batch is written by tasks 0..N-1, each in its own transaction with the transactional id `<sink>.<task>`. Kafka
commits one transaction at a time, so a batch may be committed in part. Two things are stored as committed offsets,
which every Kafka cluster supports:

- The *mark* of a task, an offset of group `<sink>.<task>`, is committed in the task's transaction: its metadata has
  the number of the batch, the query, and a fingerprint of the rows. So a mark exists if and only if its rows do.
- The *decision*, an offset of group `<sink>`, is committed in the transaction of task 0, which the driver ends
  first, when all tasks have succeeded: it names the batch and the producer id and epoch of every transaction.
  From then on, these transactions must be committed.

A repeated batch checks in this order:

1. Is there a decision? Then every transaction that it names is committed, again if needed: a producer id and epoch
   have only one transaction, and committing it twice has no effect. If all are committed the batch is complete, and
   no row is written.
2. Else, per task: InitProducerId fences earlier writers of the task and aborts their open transactions. They cannot
   commit any more, so the mark that is read now, when no offset is pending, is final: if it names this batch the
   task is done, else its rows are written. Task 0 does so even without rows, so that of two drivers with the same
   batch only the one whose task 0 came last can decide.

Attempts of a task overlap if Spark retries it, or runs a copy of a slow one (speculation). Before an attempt fences, it
waits, for a limited time, while another attempt of the same run has a pending mark: then that one has written all rows,
and Spark has accepted it or is about to. Transactions of earlier runs are known by their producer id and epoch, which
the first attempt reads when it starts. A batch that cannot be repeated has no marks. Its attempts have transactional
ids of their own, `<sink>.<task>-<attempt>`, and the driver commits those that Spark has accepted.

If a repeated batch has the same rows in each task, (2) alone makes every row arrive once, however many transactions
were committed. If rows move between tasks, (1) makes that harmless: prepared transactions are committed, not written
again. Both fail only if rows moved *and* a transaction was lost between decision and restart, because its timeout
passed. Then the fingerprints differ, or a completed task is missing, and the query fails (`RowsMoved`) instead of
writing a row twice or not at all.
"""

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import ProducerIdAndEpoch
from barnabas.client.admin.group_messages import OffsetAndMetadata

_MARK = "barnabas-mark:2"
_DECISION = "barnabas-decision:2"
#: Offsets of marks and decisions: those of a topic without records, so that no group seems to lag.
_OFFSET = 0
_ENTRY = struct.Struct(">iqh")
#: The default limit of an offset's metadata (`offset.metadata.max.bytes`), less the text around a part.
_PART_CHARS = 3_800
_UNKNOWN_EPOCH = -1


class BatchId(NamedTuple):
    """A batch of a query; `query` is empty for batches that the writer numbers."""

    query: str
    number: int


class Fingerprint(NamedTuple):
    """The fingerprint of a task's rows, in any order."""

    rows_count: int
    digest: int  #: 64 bits

    def plus(self, other: "Fingerprint") -> "Fingerprint":
        """Return the fingerprint of both sets of rows together."""
        return Fingerprint(self.rows_count + other.rows_count, (self.digest + other.digest) % (1 << 64))


NO_ROWS = Fingerprint(0, 0)


class TaskCommit(NamedTuple):
    """The mark: a task's rows of a batch are committed."""

    batch: BatchId
    rows: Fingerprint

    def to_offset(self) -> OffsetAndMetadata:
        """Return the mark as a committed offset."""
        number, rows_count = str(self.batch.number), str(self.rows.rows_count)
        words = (_MARK, number, self.batch.query, rows_count, f"{self.rows.digest:016x}")
        return OffsetAndMetadata(_OFFSET, _UNKNOWN_EPOCH, ";".join(words))

    @classmethod
    def from_offset(cls, committed: OffsetAndMetadata) -> "TaskCommit | None":
        """Return the mark in a committed offset; None for an offset that is not a mark."""
        words = committed.metadata.split(";")
        if len(words) != 5 or words[0] != _MARK:
            return None
        _, number, query, rows_count, digest = words
        return cls(BatchId(query, int(number)), Fingerprint(int(rows_count), int(digest, 16)))


class Prepared(NamedTuple):
    """A transaction with all rows of a task, and its mark."""

    task: int
    identity: ProducerIdAndEpoch
    attempt: int = 0  #: part of the transactional id; 0 for batches that can be repeated


class CommitDecision(NamedTuple):
    """The decision: a batch consists of these transactions."""

    batch: BatchId
    prepared: tuple[Prepared, ...]

    def to_offsets(self) -> list[OffsetAndMetadata]:
        """Return the decision as offsets that are committed together, in as many parts as needed."""
        flat = b"".join(_ENTRY.pack(transaction.task, *transaction.identity) for transaction in self.prepared)
        text = base64.b64encode(zlib.compress(flat, 9)).decode()
        parts = [text[start : start + _PART_CHARS] for start in range(0, len(text), _PART_CHARS)]
        return [
            OffsetAndMetadata(
                _OFFSET,
                _UNKNOWN_EPOCH,
                ";".join(
                    (_DECISION, str(self.batch.number), self.batch.query, f"{index}/{len(parts)}", part)
                ),
            )
            for index, part in enumerate(parts)
        ]

    @classmethod
    def find(cls, committed: Iterable[OffsetAndMetadata], batch: BatchId) -> "CommitDecision | None":
        """Return the decision on a batch among these offsets; None if there is none, or it is incomplete."""
        parts: dict[int, dict[int, str]] = {}
        for offset in committed:
            words = offset.metadata.split(";")
            if len(words) == 5 and words[:3] == [_DECISION, str(batch.number), batch.query]:
                index, _, count = words[3].partition("/")
                parts.setdefault(int(count), {})[int(index)] = words[4]
        # A decision overwrites the first parts of the previous one, and may have fewer parts.
        newest = [decision_parts for decision_parts in parts.values() if 0 in decision_parts]
        if len(newest) != 1 or parts.get(len(newest[0])) is not newest[0]:
            return None
        prepared = _entries("".join(newest[0][index] for index in sorted(newest[0])))
        return None if prepared is None else cls(batch, prepared)


def _entries(text: str) -> tuple[Prepared, ...] | None:
    try:
        flat = zlib.decompress(base64.b64decode(text, validate=True))
        entries = list(_ENTRY.iter_unpack(flat))
    except (binascii.Error, zlib.error, struct.error):  # parts of two decisions
        return None
    return tuple(
        Prepared(task, ProducerIdAndEpoch(producer_id, epoch)) for task, producer_id, epoch in entries
    )


def is_sink_offset(committed: OffsetAndMetadata) -> bool:
    """Whether a group has marks or decisions of a sink instead of positions of a consumer."""
    return committed.metadata.split(";")[0] in (_MARK, _DECISION)


def task_name(sink: str, task: int, attempt: int = 0) -> str:
    """Return the transactional id of a task, or of an attempt; that of a task is also the group of its mark."""
    return f"{sink}.{task}-{attempt}" if attempt else f"{sink}.{task}"


def is_task_name(sink: str, name: str) -> bool:
    """Whether it is the transactional id of a task or an attempt."""
    return re.fullmatch(rf"{re.escape(sink)}\.\d+(-\d+)?", name, re.ASCII) is not None


def find_mark(committed: Iterable[OffsetAndMetadata], batch: BatchId) -> TaskCommit | None:
    """Return a task's mark of a batch among all offsets of its group; None if there is none."""
    marks = (TaskCommit.from_offset(offset) for offset in committed)
    return next((mark for mark in marks if mark is not None and mark.batch == batch), None)


def newest_batch(committed: Iterable[OffsetAndMetadata], query: str) -> int:
    """Return the highest batch number of a query in these marks or decisions; -1 for none."""
    heads = (offset.metadata.split(";")[:3] for offset in committed)
    return max(
        (int(head[1]) for head in heads if head[0] in (_MARK, _DECISION) and head[2] == query), default=-1
    )
