"""All metrics of a broker in one table; a test compares it with docs/metrics.md."""

from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class MetricName(NamedTuple):
    """A metric's name, type and description. Names end with the unit, names of counters in `_total`."""

    name: str
    help: str
    kind: Kind
    labels: tuple[str, ...] = ()


_PARTITION = ("topic", "partition")
_COORDINATOR = ("coordinator",)
_PROTOCOL = ("protocol",)

REQUESTS = MetricName(
    "barnabas_requests_total", "Requests with a response, with or without an error.", "counter", ("api",)
)
REQUEST_ERRORS = MetricName(
    "barnabas_request_errors_total", "Requests whose whole response is a Kafka error.", "counter", ("api",)
)
REQUEST_CRASHES = MetricName(
    "barnabas_request_crashes_total",
    "Requests that failed with an unexpected error, a fault of the broker; logged with a traceback.",
    "counter",
    ("api",),
)
REQUEST_SECONDS = MetricName(
    "barnabas_request_seconds",
    "Time from a parsed request to its encoded response, including waits for data or replicas.",
    "histogram",
    ("api",),
)
BYTES_IN = MetricName("barnabas_bytes_in_total", "Bytes received from clients.", "counter")
BYTES_OUT = MetricName("barnabas_bytes_out_total", "Bytes sent to clients.", "counter")
CONNECTIONS = MetricName("barnabas_connections", "Open client connections.", "gauge", ("listener",))
LOGINS = MetricName(
    "barnabas_logins_total",
    "Logins, by outcome: succeeded, renewed, failed, expired; before a mechanism is chosen it is empty.",
    "counter",
    ("listener", "mechanism", "outcome"),
)
FETCH_SESSIONS = MetricName("barnabas_fetch_sessions", "Incremental fetch sessions (KIP-227).", "gauge")
PARTITIONS = MetricName("barnabas_partitions", "Partition replicas on this broker.", "gauge")
PARTITION_LEADERS = MetricName("barnabas_partition_leaders", "Partitions that this broker leads.", "gauge")
LOG_SIZE = MetricName(
    "barnabas_log_size_bytes", "Size of a partition's segments on disk.", "gauge", _PARTITION
)
LOG_START_OFFSET = MetricName(
    "barnabas_log_start_offset", "Log start offset of a partition.", "gauge", _PARTITION
)
LOG_END_OFFSET = MetricName("barnabas_log_end_offset", "Log end offset of a partition.", "gauge", _PARTITION)
HIGH_WATERMARK = MetricName(
    "barnabas_high_watermark",
    "High watermark of a partition, up to which consumers can read.",
    "gauge",
    _PARTITION,
)
FLUSHES = MetricName("barnabas_flushes_total", "Flushes of logs to disk.", "counter")
CLEANER_READ = MetricName(
    "barnabas_cleaner_read_bytes_total", "Bytes of segments that the log cleaner has read.", "counter"
)
CLEANER_WRITTEN = MetricName(
    "barnabas_cleaner_written_bytes_total",
    "Bytes of compacted segments that the log cleaner has written.",
    "counter",
)
CLEANER_MAX_DIRTY = MetricName(
    "barnabas_cleaner_max_dirty_percent",
    "Largest share of a compacted partition that has not been compacted yet.",
    "gauge",
)
CLEANER_LAST_CLEAN = MetricName(
    "barnabas_cleaner_last_clean_seconds", "Duration of the last pass of the log cleaner.", "gauge"
)
CLEANER_IDLE = MetricName(
    "barnabas_cleaner_idle_seconds", "Time since the end of the last pass of the log cleaner.", "gauge"
)
CLEANER_UNCLEANABLE = MetricName(
    "barnabas_cleaner_uncleanable_partitions",
    "Partitions that could not be compacted, and are skipped until the next start.",
    "gauge",
)
CLEANER_UNCLEANABLE_BYTES = MetricName(
    "barnabas_cleaner_uncleanable_bytes", "Size of the segments of uncleanable partitions.", "gauge"
)
CLEANER_LAST_LOOK = MetricName(
    "barnabas_cleaner_last_look_seconds",
    "Time since the log cleaner last checked all logs; it does not check while all its threads are busy.",
    "gauge",
)
CLEANER_MAX_OVERDUE = MetricName(
    "barnabas_cleaner_max_overdue_seconds",
    "Longest time by which a record that was never compacted exceeds max.compaction.lag.ms.",
    "gauge",
)
CLEANER_TABLE_USE = MetricName(
    "barnabas_cleaner_table_use_percent",
    "Share of a thread's part of log.cleaner.dedupe.buffer.size that the last pass has used.",
    "gauge",
)
CLEANER_COMPACTED = MetricName(
    "barnabas_cleaner_compacted_partitions_total", "Partitions that the log cleaner has compacted.", "counter"
)
CLEANER_FAILURES = MetricName(
    "barnabas_cleaner_failures_total", "Partitions that the log cleaner has failed to compact.", "counter"
)
SEGMENT_IMPORTS = MetricName(
    "barnabas_segment_imports_total",
    "Completed imports of segments that a job had compacted.",
    "counter",
)
SEGMENT_IMPORTS_REJECTED = MetricName(
    "barnabas_segment_imports_rejected_total",
    "Imports of segments that were rejected because they did not match the log.",
    "counter",
)
COORDINATOR_PARTITIONS = MetricName(
    "barnabas_coordinator_partitions",
    "Partitions of its internal topic that a coordinator leads, by state: loading, active or failed.",
    "gauge",
    ("coordinator", "state"),
)
COORDINATOR_LOADS = MetricName(
    "barnabas_coordinator_loads_total", "Partitions that a coordinator has loaded.", "counter", _COORDINATOR
)
COORDINATOR_LOAD_SECONDS = MetricName(
    "barnabas_coordinator_load_seconds_total",
    "Total duration of the loads of partitions.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_MAX_LOAD = MetricName(
    "barnabas_coordinator_max_load_seconds",
    "Longest load of a partition that a coordinator leads now.",
    "gauge",
    _COORDINATOR,
)
COORDINATOR_PENDING = MetricName(
    "barnabas_coordinator_pending_requests",
    "Requests that wait for other members, or until their records are stored.",
    "gauge",
    _COORDINATOR,
)
COORDINATOR_TIMERS = MetricName(
    "barnabas_coordinator_timers", "Timers that a coordinator has set.", "gauge", _COORDINATOR
)
COORDINATOR_BATCHES = MetricName(
    "barnabas_coordinator_batches_total",
    "Batches that a coordinator has appended to its topic.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_RECORDS = MetricName(
    "barnabas_coordinator_records_total",
    "Records that a coordinator has appended to its topic.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_REFUSED = MetricName(
    "barnabas_coordinator_refused_appends_total",
    "Failed appends of a coordinator to its topic.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_WAITS = MetricName(
    "barnabas_coordinator_waits_total",
    "Responses that waited until replicas or the disk had the records.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_WAIT_SECONDS = MetricName(
    "barnabas_coordinator_wait_seconds_total",
    "Total wait of responses for replicas or the disk.",
    "counter",
    _COORDINATOR,
)
GROUPS = MetricName("barnabas_groups", "Groups, by protocol and state.", "gauge", ("protocol", "state"))
GROUP_MEMBERS = MetricName("barnabas_group_members", "Members of groups.", "gauge", _PROTOCOL)
GROUP_REBALANCES = MetricName(
    "barnabas_group_rebalances_total",
    "Rebalances: completed ones of classic groups, those begun by a subscription or topic of consumer groups.",
    "counter",
    _PROTOCOL,
)
GROUP_OFFSETS = MetricName(
    "barnabas_group_offsets", "Committed offsets in the groups of this broker.", "gauge"
)
GROUP_PENDING_OFFSETS = MetricName("barnabas_group_pending_offsets", "Offsets in open transactions.", "gauge")
OFFSET_COMMITS = MetricName(
    "barnabas_offset_commits_total", "Committed offsets, counted by partition.", "counter"
)
OFFSET_EXPIRATIONS = MetricName(
    "barnabas_offset_expirations_total", "Offsets that have expired unused.", "counter"
)
OFFSET_DELETIONS = MetricName(
    "barnabas_offset_deletions_total", "Offsets deleted by OffsetDelete.", "counter"
)
TRANSACTIONAL_IDS = MetricName(
    "barnabas_transactional_ids", "Transactional ids, by the state of their transaction.", "gauge", ("state",)
)
TRANSACTIONAL_IDS_EXPIRED = MetricName(
    "barnabas_transactional_ids_expired_total", "Transactional ids that have expired unused.", "counter"
)
TRANSACTIONS_TIMED_OUT = MetricName(
    "barnabas_transactions_timed_out_total",
    "Transactions aborted because they exceeded their timeout.",
    "counter",
)
TRANSACTIONS_ENDING = MetricName(
    "barnabas_transactions_ending",
    "Ending transactions, whose markers are not all written yet.",
    "gauge",
)
MARKERS_WAITING = MetricName(
    "barnabas_transaction_markers_waiting", "Transaction markers to be written.", "gauge"
)
MARKER_RETRIES = MetricName(
    "barnabas_transaction_marker_retries_total",
    "Retried writes of transaction markers.",
    "counter",
)
AUDIT_EVENTS = MetricName(
    "barnabas_audit_events_total",
    "Audit events that this broker has published to __barnabas_audit.",
    "counter",
)
AUDIT_WAITING = MetricName(
    "barnabas_audit_waiting_records",
    "Audit records in the store that are not published to __barnabas_audit yet.",
    "gauge",
)
METADATA_REVISION = MetricName(
    "barnabas_metadata_revision", "Revision of the metadata image of this broker.", "gauge"
)
POLICY_CHECKS = MetricName(
    "barnabas_policy_checks_total",
    "Checks by policies, by outcome: asked (all checks), refused, failed (an error or a timeout), warned.",
    "counter",
    ("outcome",),
)
POLICY_RELOADS = MetricName(
    "barnabas_policy_reloads_total",
    "Reloads of policies, by outcome: done or failed.",
    "counter",
    ("outcome",),
)
THROTTLED = MetricName(
    "barnabas_throttled_answers_total",
    "Responses with a throttle time because of the client's quotas.",
    "counter",
)
REFUSED_CONNECTIONS = MetricName(
    "barnabas_refused_connections_total",
    "Connections closed because their address exceeded its connection rate.",
    "counter",
)
CLIENT_INSTANCES = MetricName(
    "barnabas_client_instances",
    "Clients that have fetched a subscription or pushed metrics recently (KIP-714).",
    "gauge",
)
CLIENT_GAUGE = MetricName(
    "barnabas_client_gauge",
    "Last value of a gauge that a client has pushed (KIP-714), with its attributes as further labels.",
    "gauge",
    ("metric", "client_instance_id", "client_id", "client_software_name", "client_software_version"),
)
CLIENT_SUM = MetricName(
    "barnabas_client_sum_total",
    "Sum of a counter over the pushes of a client (KIP-714), with its attributes as further labels.",
    "counter",
    ("metric", "client_instance_id", "client_id", "client_software_name", "client_software_version"),
)
CLIENT_DROPPED = MetricName(
    "barnabas_client_dropped_total",
    "Data points of clients that exceeded the limit of series, and were dropped.",
    "counter",
)
PROCESS_RESIDENT_MEMORY = MetricName(
    "barnabas_process_resident_memory_bytes", "Resident memory, including mapped segments.", "gauge"
)
PROCESS_CPU = MetricName(
    "barnabas_process_cpu_seconds_total", "Processor time used, in user and system mode.", "counter"
)

METRICS: tuple[MetricName, ...] = (
    REQUESTS,
    REQUEST_ERRORS,
    REQUEST_CRASHES,
    REQUEST_SECONDS,
    BYTES_IN,
    BYTES_OUT,
    CONNECTIONS,
    LOGINS,
    FETCH_SESSIONS,
    PARTITIONS,
    PARTITION_LEADERS,
    LOG_SIZE,
    LOG_START_OFFSET,
    LOG_END_OFFSET,
    HIGH_WATERMARK,
    FLUSHES,
    CLEANER_READ,
    CLEANER_WRITTEN,
    CLEANER_MAX_DIRTY,
    CLEANER_LAST_CLEAN,
    CLEANER_IDLE,
    CLEANER_UNCLEANABLE,
    CLEANER_UNCLEANABLE_BYTES,
    CLEANER_LAST_LOOK,
    CLEANER_MAX_OVERDUE,
    CLEANER_TABLE_USE,
    CLEANER_COMPACTED,
    CLEANER_FAILURES,
    SEGMENT_IMPORTS,
    SEGMENT_IMPORTS_REJECTED,
    COORDINATOR_PARTITIONS,
    COORDINATOR_LOADS,
    COORDINATOR_LOAD_SECONDS,
    COORDINATOR_MAX_LOAD,
    COORDINATOR_PENDING,
    COORDINATOR_TIMERS,
    COORDINATOR_BATCHES,
    COORDINATOR_RECORDS,
    COORDINATOR_REFUSED,
    COORDINATOR_WAITS,
    COORDINATOR_WAIT_SECONDS,
    GROUPS,
    GROUP_MEMBERS,
    GROUP_REBALANCES,
    GROUP_OFFSETS,
    GROUP_PENDING_OFFSETS,
    OFFSET_COMMITS,
    OFFSET_EXPIRATIONS,
    OFFSET_DELETIONS,
    TRANSACTIONAL_IDS,
    TRANSACTIONAL_IDS_EXPIRED,
    TRANSACTIONS_TIMED_OUT,
    TRANSACTIONS_ENDING,
    MARKERS_WAITING,
    MARKER_RETRIES,
    AUDIT_EVENTS,
    AUDIT_WAITING,
    METADATA_REVISION,
    POLICY_CHECKS,
    POLICY_RELOADS,
    THROTTLED,
    REFUSED_CONNECTIONS,
    CLIENT_INSTANCES,
    CLIENT_GAUGE,
    CLIENT_SUM,
    CLIENT_DROPPED,
    PROCESS_RESIDENT_MEMORY,
    PROCESS_CPU,
)
