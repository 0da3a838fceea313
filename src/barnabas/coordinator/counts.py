"""What a coordinator has done since the broker started."""

from dataclasses import dataclass


@dataclass(slots=True)
class CoordinatorCounts:
    """Numbers that only grow; they outlive the shards."""

    loads_count: int = 0
    load_ms: int = 0  #: of all loads together
    batches_count: int = 0  #: appended to the shards' logs
    records_count: int = 0  #: in those batches
    refused_appends_count: int = 0  #: events whose records the log did not take
    #: events whose answers waited for records to be on every in-sync replica, and on disk if they must be
    waits_count: int = 0
    wait_ms: int = 0  #: of all those waits together
