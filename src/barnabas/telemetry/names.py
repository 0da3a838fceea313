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
    "barnabas_requests_total", "Requests that got a response, with or without an error.", "counter", ("api",)
)
REQUEST_ERRORS = MetricName(
    "barnabas_request_errors_total",
    "Requests that failed as a whole with a Kafka error.",
    "counter",
    ("api",),
)
REQUEST_CRASHES = MetricName(
    "barnabas_request_crashes_total",
    "Requests that failed with an unexpected exception: a bug of the broker, logged with a traceback.",
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
    "Authentications by outcome: succeeded, renewed, failed, expired. The mechanism is empty until one is chosen.",
    "counter",
    ("listener", "mechanism", "outcome"),
)
FETCH_SESSIONS = MetricName("barnabas_fetch_sessions", "Incremental fetch sessions (KIP-227).", "gauge")
PARTITIONS = MetricName("barnabas_partitions", "Partition replicas on this broker.", "gauge")
PARTITION_LEADERS = MetricName("barnabas_partition_leaders", "Partitions that this broker leads.", "gauge")
UNDER_REPLICATED = MetricName(
    "barnabas_under_replicated_partitions",
    "Partitions that this broker leads with fewer in-sync replicas than replicas.",
    "gauge",
)
UNDER_MIN_ISR = MetricName(
    "barnabas_under_min_isr_partitions",
    "Partitions that this broker leads with fewer in-sync replicas than min.insync.replicas.",
    "gauge",
)
LEADER_ELECTIONS = MetricName(
    "barnabas_leader_elections_total", "Elections that made this broker the leader of a partition.", "counter"
)
UNCLEAN_ELECTIONS = MetricName(
    "barnabas_unclean_leader_elections_total",
    "Elections that made this broker the leader although it may lack acknowledged records.",
    "counter",
)
ISR_SHRINKS = MetricName(
    "barnabas_isr_shrinks_total",
    "Removals of in-sync replicas from partitions that this broker leads.",
    "counter",
)
ISR_EXPANDS = MetricName(
    "barnabas_isr_expands_total",
    "Additions of in-sync replicas to partitions that this broker leads.",
    "counter",
)
ACTIVE_CONTROLLER = MetricName(
    "barnabas_active_controller", "Whether this broker is the controller: 1 or 0.", "gauge"
)
OFFLINE_PARTITIONS = MetricName(
    "barnabas_offline_partitions",
    "Partitions of the cluster without a leader; 0 on brokers that are not the controller.",
    "gauge",
)
FENCED_BROKERS = MetricName(
    "barnabas_fenced_brokers",
    "Registered brokers that are fenced; 0 on brokers that are not the controller.",
    "gauge",
)
LOG_SIZE = MetricName(
    "barnabas_log_size_bytes", "Size of a partition's segments on disk.", "gauge", _PARTITION
)
LOG_START_OFFSET = MetricName(
    "barnabas_log_start_offset", "Log start offset of a partition.", "gauge", _PARTITION
)
LOG_END_OFFSET = MetricName(
    "barnabas_log_end_offset",
    "Log end offset of a partition: the offset of the next record.",
    "gauge",
    _PARTITION,
)
LOG_END_OFFSET = MetricName("barnabas_log_end_offset", "Log end offset of a partition.", "gauge", _PARTITION)
HIGH_WATERMARK = MetricName(
    "barnabas_high_watermark",
    "High watermark of a partition: consumers can read up to this offset.",
    "gauge",
    _PARTITION,
)
FLUSHES = MetricName("barnabas_flushes_total", "Flushes of log data to disk.", "counter")
CLEANER_READ = MetricName(
    "barnabas_cleaner_read_bytes_total", "Size of the segments that the log cleaner has rewritten.", "counter"
)
CLEANER_WRITTEN = MetricName(
    "barnabas_cleaner_written_bytes_total",
    "Bytes that the log cleaner has written in place of the segments that it read.",
    "counter",
)
CLEANER_MAX_DIRTY = MetricName(
    "barnabas_cleaner_max_dirty_percent",
    "Largest share of a partition, in percent, that has not been cleaned yet.",
    "gauge",
)
CLEANER_LAST_CLEAN = MetricName(
    "barnabas_cleaner_last_clean_seconds", "Duration of the log cleaner's last run over a partition.", "gauge"
)
CLEANER_IDLE = MetricName(
    "barnabas_cleaner_idle_seconds", "Time since the log cleaner's last run over a partition ended.", "gauge"
)
CLEANER_UNCLEANABLE = MetricName(
    "barnabas_cleaner_uncleanable_partitions",
    "Partitions that could not be cleaned; they are skipped until the next start.",
    "gauge",
)
CLEANER_UNCLEANABLE_BYTES = MetricName(
    "barnabas_cleaner_uncleanable_bytes", "Size of the segments of uncleanable partitions.", "gauge"
)
CLEANER_LAST_LOOK = MetricName(
    "barnabas_cleaner_last_look_seconds",
    "Time since the log cleaner last checked for work; it does not check while all its threads are busy.",
    "gauge",
)
CLEANER_MAX_OVERDUE = MetricName(
    "barnabas_cleaner_max_overdue_seconds",
    "Longest time by which a record that has not been cleaned exceeds max.compaction.lag.ms.",
    "gauge",
)
CLEANER_TABLE_USE = MetricName(
    "barnabas_cleaner_table_use_percent",
    "Use of a thread's share of log.cleaner.dedupe.buffer.size in the last run, in percent.",
    "gauge",
)
CLEANER_COMPACTED = MetricName(
    "barnabas_cleaner_compacted_partitions_total",
    "Runs over a partition that the log cleaner has completed.",
    "counter",
)
CLEANER_FAILURES = MetricName(
    "barnabas_cleaner_failures_total", "Runs over a partition in which the log cleaner failed.", "counter"
)
SEGMENT_IMPORTS = MetricName(
    "barnabas_segment_imports_total",
    "Logs that were imported from segment files.",
    "counter",
)
SEGMENT_IMPORTS_REJECTED = MetricName(
    "barnabas_segment_imports_rejected_total",
    "Imports of segment files that were rejected.",
    "counter",
)
COORDINATOR_PARTITIONS = MetricName(
    "barnabas_coordinator_partitions",
    "Partitions of a coordinator's internal topic, by state: loading, active or failed.",
    "gauge",
    ("coordinator", "state"),
)
COORDINATOR_LOADS = MetricName(
    "barnabas_coordinator_loads_total", "Partitions that a coordinator has loaded.", "counter", _COORDINATOR
)
COORDINATOR_LOAD_SECONDS = MetricName(
    "barnabas_coordinator_load_seconds_total", "Total duration of those loads.", "counter", _COORDINATOR
)
COORDINATOR_MAX_LOAD = MetricName(
    "barnabas_coordinator_max_load_seconds",
    "Duration of the longest load among a coordinator's current partitions.",
    "gauge",
    _COORDINATOR,
)
COORDINATOR_PENDING = MetricName(
    "barnabas_coordinator_pending_requests",
    "Requests that wait for other members or for the replication of their records.",
    "gauge",
    _COORDINATOR,
)
COORDINATOR_TIMERS = MetricName(
    "barnabas_coordinator_timers", "Active timers of a coordinator.", "gauge", _COORDINATOR
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
    "Appends to a coordinator's topic that failed.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_WAITS = MetricName(
    "barnabas_coordinator_waits_total",
    "Appends whose responses waited for replication or for a flush.",
    "counter",
    _COORDINATOR,
)
COORDINATOR_WAIT_SECONDS = MetricName(
    "barnabas_coordinator_wait_seconds_total",
    "Total time that those responses waited.",
    "counter",
    _COORDINATOR,
)
GROUPS = MetricName("barnabas_groups", "Groups, by protocol and state.", "gauge", ("protocol", "state"))
GROUP_MEMBERS = MetricName("barnabas_group_members", "Members of groups.", "gauge", _PROTOCOL)
GROUP_REBALANCES = MetricName(
    "barnabas_group_rebalances_total",
    "Completed rebalances of classic groups; new epochs of consumer groups because of a subscription or topic.",
    "counter",
    _PROTOCOL,
)
GROUP_REBALANCE_CAUSES = MetricName(
    "barnabas_group_rebalance_causes_total",
    "Rebalances started, by their first event: joined, left, session-timeout and so on.",
    "counter",
    ("protocol", "cause"),
)
GROUP_REBALANCES_COMPLETED = MetricName(
    "barnabas_group_rebalances_completed_total",
    "Rebalances after which all members had their assignments.",
    "counter",
    _PROTOCOL,
)
GROUP_REBALANCE_SECONDS = MetricName(
    "barnabas_group_rebalance_seconds_total",
    "Total duration of completed rebalances, from the first event.",
    "counter",
    _PROTOCOL,
)
GROUP_OFFSETS = MetricName("barnabas_group_offsets", "Committed offsets.", "gauge")
GROUP_PENDING_OFFSETS = MetricName(
    "barnabas_group_pending_offsets", "Offsets committed in open transactions.", "gauge"
)
OFFSET_COMMITS = MetricName(
    "barnabas_offset_commits_total", "Offset commits, counted for each partition.", "counter"
)
OFFSET_EXPIRATIONS = MetricName(
    "barnabas_offset_expirations_total", "Committed offsets that have expired.", "counter"
)
OFFSET_DELETIONS = MetricName(
    "barnabas_offset_deletions_total", "Committed offsets deleted by OffsetDelete.", "counter"
)
TRANSACTIONAL_IDS = MetricName(
    "barnabas_transactional_ids", "Transactional ids, by the state of their transaction.", "gauge", ("state",)
)
TRANSACTIONAL_IDS_EXPIRED = MetricName(
    "barnabas_transactional_ids_expired_total", "Transactional ids that have expired.", "counter"
)
TRANSACTIONS_TIMED_OUT = MetricName(
    "barnabas_transactions_timed_out_total",
    "Transactions aborted because of their timeout.",
    "counter",
)
TRANSACTIONS_ENDING = MetricName(
    "barnabas_transactions_ending",
    "Completed transactions whose markers have not all been written.",
    "gauge",
)
MARKERS_WAITING = MetricName(
    "barnabas_transaction_markers_waiting", "Partitions that still need a transaction marker.", "gauge"
)
MARKER_RETRIES = MetricName(
    "barnabas_transaction_marker_retries_total",
    "Retries after a transaction marker could not be written.",
    "counter",
)
AUDIT_EVENTS = MetricName(
    "barnabas_audit_events_total",
    "Audit events that this broker has published to __barnabas_audit.",
    "counter",
)
AUDIT_WAITING = MetricName(
    "barnabas_audit_waiting_records",
    "Audit records in the metadata store that have not been published to __barnabas_audit yet.",
    "gauge",
)
METADATA_REVISION = MetricName(
    "barnabas_metadata_revision", "Revision of cluster state on this broker.", "gauge"
)
METADATA_DIFFERENT = MetricName(
    "barnabas_metadata_different_brokers",
    "Brokers whose metadata differs from that of the controller at the same revision; 0 on other brokers.",
    "gauge",
)
POLICY_CHECKS = MetricName(
    "barnabas_policy_checks_total",
    "Policy checks by outcome: checked (all checks), refused, failed (an exception or a timeout), warned.",
    "counter",
    ("outcome",),
)
POLICY_RELOADS = MetricName(
    "barnabas_policy_reloads_total",
    "Reloads of policies, by outcome: done or failed.",
    "counter",
    ("outcome",),
)
SECURITY_LOG_LINES = MetricName(
    "barnabas_security_log_lines_total",
    "Lines of the security log that were to be published to the topic __barnabas_security, by outcome: published or "
    "lost.",
    "counter",
    ("outcome",),
)
SECURITY_CALLS = MetricName(
    "barnabas_security_class_calls_total",
    "Calls of Python classes, by class (authorizer or principal builder) and outcome: called (all calls), failed (an "
    "exception or a timeout).",
    "counter",
    ("class", "outcome"),
)
THROTTLED = MetricName(
    "barnabas_throttled_answers_total", "Responses with a throttle time because of a quota.", "counter"
)
REFUSED_CONNECTIONS = MetricName(
    "barnabas_refused_connections_total",
    "Connections closed because they exceeded the connection rate quota of their address.",
    "counter",
)
CLIENT_INSTANCES = MetricName(
    "barnabas_client_instances",
    "Client instances that have requested a subscription or pushed metrics (KIP-714).",
    "gauge",
)
CLIENT_GAUGE = MetricName(
    "barnabas_client_gauge",
    "Last value of a client metric (KIP-714), with the attributes of the metric as additional labels.",
    "gauge",
    ("metric", "client_instance_id", "client_id", "client_software_name", "client_software_version"),
)
CLIENT_SUM = MetricName(
    "barnabas_client_sum_total",
    "Sum of a client metric over all pushes (KIP-714), with the same labels.",
    "counter",
    ("metric", "client_instance_id", "client_id", "client_software_name", "client_software_version"),
)
CLIENT_DROPPED = MetricName(
    "barnabas_client_dropped_total",
    "Data points of clients that were dropped because of the limits on series.",
    "counter",
)
PROCESS_RESIDENT_MEMORY = MetricName(
    "barnabas_process_resident_memory_bytes", "Resident memory, including mapped segments.", "gauge"
)
PROCESS_CPU = MetricName("barnabas_process_cpu_seconds_total", "CPU time in user and system mode.", "counter")

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
    UNDER_REPLICATED,
    UNDER_MIN_ISR,
    LEADER_ELECTIONS,
    UNCLEAN_ELECTIONS,
    ISR_SHRINKS,
    ISR_EXPANDS,
    ACTIVE_CONTROLLER,
    OFFLINE_PARTITIONS,
    FENCED_BROKERS,
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
    GROUP_REBALANCE_CAUSES,
    GROUP_REBALANCES_COMPLETED,
    GROUP_REBALANCE_SECONDS,
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
    METADATA_DIFFERENT,
    POLICY_CHECKS,
    POLICY_RELOADS,
    SECURITY_LOG_LINES,
    SECURITY_CALLS,
    THROTTLED,
    REFUSED_CONNECTIONS,
    CLIENT_INSTANCES,
    CLIENT_GAUGE,
    CLIENT_SUM,
    CLIENT_DROPPED,
    PROCESS_RESIDENT_MEMORY,
    PROCESS_CPU,
)
