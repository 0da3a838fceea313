"""The import of segment files, which only Barnabas has."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.errors import error_for
from barnabas.wire.barnabas_messages.import_segments import (
    ImportSegmentsRequest,
    ImportSegmentsResponse,
    ImportSegmentsTopic,
)
from barnabas.wire.errors import KafkaError


class ImportedLog(NamedTuple):
    start_offset: int
    end_offset: int


def import_segments_request(partitions: Iterable[TopicPartition]) -> ImportSegmentsRequest:
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        indexes[tp.topic].append(tp.partition)
    topics = [
        ImportSegmentsTopic(name=name, partition_indexes=partition_indexes)
        for name, partition_indexes in indexes.items()
    ]
    return ImportSegmentsRequest(topics=topics)


def parse_import_response(response: ImportSegmentsResponse) -> dict[TopicPartition, ImportedLog | KafkaError]:
    return {
        TopicPartition(result.topic, result.partition_index): error_for(
            result.error_code, result.error_message
        )
        or ImportedLog(result.start_offset, result.end_offset)
        for result in response.results
    }
