"""Keys of the specifications: the administrative protocol, KIP-108, the wire protocol of a gateway.

Only names and numbers; docs/conformance.md says how Barnabas fulfils them, and which test proves it.
"""

from support.fields import paths_of
from support.nodes import APIS

#: Section -> the keys of its rows.
Sections = dict[str, tuple[str, ...]]

#: The APIs of the administrative protocol; DETAILED ones have versions and fields.
ADMINISTRATIVE = (19, 20, 21, 37, 32, 33, 44, 29, 30, 31, 34, 35, 43, 45, 46, 60, 80, 81, 82)
DETAILED = (19, 20, 37, 32, 44, 29, 30, 31, 43, 45, 35, 60)

#: API -> the highest version in the specification; the lowest is 0.
VERSIONS_LAST = {19: 7, 20: 6, 37: 3, 32: 4, 44: 1, 29: 3, 30: 3, 31: 3, 43: 2, 45: 0, 35: 4, 60: 2}

#: API -> the fields of its request and response, nested structs written as paths.
FIELDS = {
    19: (
        """
        topics topics.name topics.num_partitions topics.replication_factor topics.assignments
        topics.configs topics.assignments.partition_index topics.assignments.broker_ids
        topics.configs.name topics.configs.value timeout_ms validate_only
        """,
        """
        throttle_time_ms topics topics.name topics.topic_id topics.error_code topics.error_message
        topics.topic_config_error_code topics.num_partitions topics.replication_factor topics.configs
        topics.configs.name topics.configs.value topics.configs.read_only topics.configs.config_source
        topics.configs.is_sensitive
        """,
    ),
    20: (
        "topics topics.name topics.topic_id topic_names timeout_ms",
        """
        throttle_time_ms responses responses.name responses.topic_id responses.error_code
        responses.error_message
        """,
    ),
    37: (
        """
        topics topics.name topics.count topics.assignments topics.assignments.broker_ids timeout_ms
        validate_only
        """,
        "throttle_time_ms results results.name results.error_code results.error_message",
    ),
    32: (
        """
        resources resources.resource_type resources.resource_name resources.configuration_keys
        include_synonyms include_documentation
        """,
        """
        throttle_time_ms results results.error_code results.error_message results.resource_type
        results.resource_name results.configs results.configs.name results.configs.value
        results.configs.read_only results.configs.is_default results.configs.config_source
        results.configs.is_sensitive results.configs.synonyms results.configs.config_type
        results.configs.documentation
        """,
    ),
    44: (
        """
        resources resources.resource_type resources.resource_name resources.configs
        resources.configs.name resources.configs.config_operation resources.configs.value
        validate_only
        """,
        """
        throttle_time_ms responses responses.error_code responses.error_message
        responses.resource_type responses.resource_name
        """,
    ),
    29: (
        """
        resource_type_filter resource_name_filter pattern_type_filter principal_filter host_filter
        operation permission_type
        """,
        """
        throttle_time_ms error_code error_message resources resources.resource_type
        resources.resource_name resources.pattern_type resources.acls resources.acls.principal
        resources.acls.host resources.acls.operation resources.acls.permission_type
        """,
    ),
    30: (
        """
        creations creations.resource_type creations.resource_name creations.resource_pattern_type
        creations.principal creations.host creations.operation creations.permission_type
        """,
        "throttle_time_ms results results.error_code results.error_message",
    ),
    31: (
        """
        filters filters.resource_type_filter filters.resource_name_filter filters.pattern_type_filter
        filters.principal_filter filters.host_filter filters.operation filters.permission_type
        """,
        """
        throttle_time_ms filter_results filter_results.error_code filter_results.error_message
        filter_results.matching_acls filter_results.matching_acls.error_code
        filter_results.matching_acls.error_message filter_results.matching_acls.resource_type
        filter_results.matching_acls.resource_name filter_results.matching_acls.pattern_type
        filter_results.matching_acls.principal filter_results.matching_acls.host
        filter_results.matching_acls.operation filter_results.matching_acls.permission_type
        """,
    ),
    43: (
        "election_type topic_partitions topic_partitions.topic topic_partitions.partitions timeout_ms",
        """
        throttle_time_ms error_code replica_election_results replica_election_results.topic
        replica_election_results.partition_result
        replica_election_results.partition_result.partition_id
        replica_election_results.partition_result.error_code
        replica_election_results.partition_result.error_message
        """,
    ),
    45: (
        """
        timeout_ms topics topics.name topics.partitions topics.partitions.partition_index
        topics.partitions.replicas
        """,
        """
        throttle_time_ms error_code error_message responses responses.name responses.partitions
        responses.partitions.partition_index responses.partitions.error_code
        responses.partitions.error_message
        """,
    ),
    35: (
        "topics topics.topic topics.partitions",
        """
        throttle_time_ms error_code results results.error_code results.log_dir results.topics
        results.topics.name results.topics.partitions results.topics.partitions.partition_index
        results.topics.partitions.partition_size results.topics.partitions.offset_lag
        results.topics.partitions.is_future_key results.total_bytes results.usable_bytes
        """,
    ),
    60: (
        "include_cluster_authorized_operations endpoint_type include_fenced_brokers",
        """
        throttle_time_ms error_code error_message endpoint_type cluster_id controller_id brokers
        brokers.broker_id brokers.host brokers.port brokers.rack brokers.is_fenced
        cluster_authorized_operations
        """,
    ),
}

#: Requirements on an API beyond its fields.
GUARANTEES: Sections = {
    "CreateTopics: guarantees": ("atomicity", "validation", "timeout", "idempotence"),
    "CreateTopics: errors": (
        "TOPIC_ALREADY_EXISTS",
        "INVALID_TOPIC",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_PARTITIONS",
        "TOPIC_AUTHORIZATION_FAILED",
        "REQUEST_TIMED_OUT",
    ),
    "DeleteTopics: guarantees": ("irreversibility", "asynchrony", "data loss", "metadata"),
    "CreatePartitions: guarantees": ("increase only", "key distribution", "data preservation"),
    "ElectLeaders: guarantees": ("unclean elections",),
    "AlterPartitionReassignments: guarantees": ("progress", "availability", "cancellation"),
}

#: The enumerations, including Kafka's values beyond the specification.
NUMBERS: Sections = {
    "Config resource types": (
        "0 UNKNOWN",
        "2 TOPIC",
        "4 BROKER",
        "8 BROKER_LOGGER",
        "16 CLIENT_METRICS",
        "32 GROUP",
    ),
    "Config sources": (
        "0 UNKNOWN",
        "1 TOPIC_CONFIG",
        "2 DYNAMIC_BROKER_CONFIG",
        "3 DYNAMIC_DEFAULT_BROKER_CONFIG",
        "4 STATIC_BROKER_CONFIG",
        "5 DEFAULT_CONFIG",
        "6 DYNAMIC_BROKER_LOGGER_CONFIG",
        "7 CLIENT_METRICS_CONFIG",
        "8 GROUP_CONFIG",
    ),
    "Config operations": ("0 SET", "1 DELETE", "2 APPEND", "3 SUBTRACT"),
    "ACL resource types": (
        "0 UNKNOWN",
        "1 ANY",
        "2 TOPIC",
        "3 GROUP",
        "4 CLUSTER",
        "5 TRANSACTIONAL_ID",
        "6 DELEGATION_TOKEN",
        "7 USER",
    ),
    "ACL operations": (
        "0 UNKNOWN",
        "1 ANY",
        "2 ALL",
        "3 READ",
        "4 WRITE",
        "5 CREATE",
        "6 DELETE",
        "7 ALTER",
        "8 DESCRIBE",
        "9 CLUSTER_ACTION",
        "10 DESCRIBE_CONFIGS",
        "11 ALTER_CONFIGS",
        "12 IDEMPOTENT_WRITE",
        "13 CREATE_TOKENS",
        "14 DESCRIBE_TOKENS",
        "15 TWO_PHASE_COMMIT",
    ),
    "ACL permission types": ("0 UNKNOWN", "1 ANY", "2 DENY", "3 ALLOW"),
    "ACL pattern types": ("0 UNKNOWN", "1 ANY", "2 MATCH", "3 LITERAL", "4 PREFIXED"),
    "Election types": ("0 PREFERRED", "1 UNCLEAN"),
}

PRACTICES: Sections = {
    "Practices: topics": ("validate first", "look after a timeout", "plan partitions", "assign by rack"),
    "Practices: ACLs": ("prefixes", "audits", "tests", "documents"),
    "Practices: configurations": ("increments", "track changes", "tests", "describe first"),
}

POLICIES: Sections = {
    "CreateTopicPolicy (KIP-108)": (
        "create.topic.policy.class.name",
        "CreateTopicPolicy",
        "configure()",
        "close()",
        "validate()",
        "RequestMetadata.topic",
        "RequestMetadata.numPartitions",
        "RequestMetadata.replicationFactor",
        "RequestMetadata.replicasAssignments",
        "RequestMetadata.configs",
        "RequestMetadata constructor",
        "PolicyViolationException",
        "only the topic fails",
        "error_message",
        "POLICY_VIOLATION (44)",
        "validate_only",
        "CreateTopics v1",
        "start-up",
    ),
}

GATEWAY: Sections = {
    "Wire: APIs": (
        "18 ApiVersions",
        "0 Produce",
        "1 Fetch",
        "2 ListOffsets",
        "3 Metadata",
        "19 CreateTopics",
        "20 DeleteTopics",
        "32 DescribeConfigs",
        "33 AlterConfigs",
    ),
    "Wire: flexible versions": (
        "Produce 9",
        "Fetch 12",
        "ListOffsets 6",
        "Metadata 9",
        "ApiVersions 3",
        "CreateTopics 5",
        "DeleteTopics 4",
        "DescribeConfigs 4",
        "AlterConfigs 2",
    ),
    "Wire: what the APIs do": (
        "ApiVersions: table",
        "ApiVersions: response header",
        "ApiVersions: version too high",
        "Metadata: brokers",
        "Metadata: partition counts",
        "Produce: records",
        "Produce: base_offset",
        "Fetch: fetch_offset and max_bytes",
        "Fetch: record bytes",
        "Fetch: high_watermark",
        "Fetch: empty result",
        "CreateTopics: names",
        "CreateTopics: counts",
        "CreateTopics: configs",
        "CreateTopics: topic id",
        "CreateTopics: num_partitions in the answer",
        "DeleteTopics: registry and records",
        "DeleteTopics: absent topic",
        "DescribeConfigs: values and sources",
        "DescribeConfigs: config_names",
        "DescribeConfigs: absent topic",
        "AlterConfigs: full replace",
        "AlterConfigs: validation",
        "AlterConfigs: absent topic",
    ),
    "Wire: Metadata by flag": (
        "named, there",
        "named, absent, flag true",
        "named, absent, flag false",
        "null topic list",
        "before v4",
    ),
    "Wire: ListOffsets by timestamp": ("-2 earliest", "-1 latest", ">= 0 by timestamp"),
    "Wire: spans": (
        "request: api_key",
        "metadata: auto_create",
        "produce: virtual_topic",
        "produce: record_count",
        "produce: base_offset",
        "fetch: virtual_topic",
        "fetch: fetch_offset",
        "fetch: returned_count",
        "fetch: high_watermark",
        "list_offsets",
        "topic create: topic",
        "topic create: topic_id",
        "topic create: partition_count",
        "topic delete",
        "describe-configs",
        "alter-configs",
    ),
    "Wire: error codes": ("0", "1", "3", "17", "35", "36", "37", "38", "40"),
    "Wire: later APIs": (
        "10 FindCoordinator",
        "11 JoinGroup",
        "14 SyncGroup",
        "12 Heartbeat",
        "13 LeaveGroup",
        "8 OffsetCommit",
        "9 OffsetFetch",
        "17 SaslHandshake",
        "36 SaslAuthenticate",
        "30 CreateAcls",
        "29 DescribeAcls",
        "31 DeleteAcls",
    ),
    "Wire: framing": ("request", "response", "tagged fields"),
}


def named(key: int) -> str:
    return f"{key} {APIS[key].name}"


def details(key: int) -> Sections:
    """Return versions and fields of an API: those of the specification and Barnabas's additions."""
    spec = APIS[key]
    last = max(VERSIONS_LAST[key], spec.versions.last)
    fields = [
        tuple(dict.fromkeys([*listed.split(), *paths_of(message)]))
        for listed, message in zip(FIELDS[key], (spec.request, spec.response), strict=True)
    ]
    return {
        f"{spec.name}: versions": tuple(f"v{version}" for version in range(last + 1)),
        f"{spec.name}: request": fields[0],
        f"{spec.name}: response": fields[1],
    }


def sections() -> Sections:
    """Return every section of docs/conformance.md with the keys of its rows."""
    found: Sections = {"Administrative APIs": tuple(named(key) for key in ADMINISTRATIVE)}
    for key in DETAILED:
        found |= details(key)
    return found | GUARANTEES | NUMBERS | PRACTICES | POLICIES | GATEWAY
