"""Counters of a coordinator."""

from dataclasses import dataclass


@dataclass(slots=True)
class CoordinatorCounts:
    """Counters that only increase; they outlive the shards."""

    loads_count: int = 0
    load_ms: int = 0  #: of all loads
    batches_count: int = 0  #: appended to the logs of shards
    records_count: int = 0  #: in those batches
    refused_appends_count: int = 0  #: events whose records could not be appended
    #: events whose responses waited for replication or for the disk
    waits_count: int = 0
    wait_ms: int = 0  #: of all those waits
