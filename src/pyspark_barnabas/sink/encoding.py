"""Encodes columns as record batches. No IO."""

from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.base.ids import ProducerIdAndEpoch
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.arrow_encode import ArrowEncoder
from barnabas.wire.records.arrow_rows import Batching, Columns, EncodedBatch
from barnabas.wire.records.batch import NO_PRODUCER_ID, NO_SEQUENCE
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.partitioning import Longs


@dataclass(frozen=True)
class Encoder:
    """The common properties of a task's batches."""

    identity: ProducerIdAndEpoch | None  #: None for a producer that is not idempotent
    transactional: bool
    compression: Compression
    batch_bytes: int

    def of(self, columns: Columns) -> "RowEncoder":
        """Return the encoder of these rows.

        :raises SinkError: For a header without a key, or a timestamp that no record can hold.
        """
        batching = Batching(
            self.batch_bytes,
            self.compression,
            producer_id=NO_PRODUCER_ID if self.identity is None else self.identity.producer_id,
            producer_epoch=-1 if self.identity is None else self.identity.producer_epoch,
            transactional=self.transactional,
        )
        try:
            return RowEncoder(ArrowEncoder(columns), batching)
        except KafkaError as error:
            raise SinkError(error.message) from error


@dataclass(frozen=True)
class RowEncoder:
    """Columns that are encoded partition by partition."""

    columns: ArrowEncoder
    batching: Batching

    def batches(self, rows: Longs, sequence: int) -> Iterator[EncodedBatch]:
        """Yield those rows, in order, in batches of at most the given size, except for single larger rows."""
        has_sequence = self.batching.producer_id != NO_PRODUCER_ID
        return self.columns.batches(self.batching, sequence if has_sequence else NO_SEQUENCE, rows)
