"""The internal topics, which only brokers write to."""

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_GROUP_TOPIC = "__share_group_state"
#: The audit events.
AUDIT_TOPIC = "__barnabas_audit"
#: The logins and denials.
SECURITY_TOPIC = "__barnabas_security"

#: Those that Apache Kafka does not have.
OWN_TOPICS = frozenset({AUDIT_TOPIC, SECURITY_TOPIC})

INTERNAL_TOPICS = OWN_TOPICS | {GROUP_TOPIC, TRANSACTION_TOPIC, SHARE_GROUP_TOPIC}

#: Apache Kafka's own metadata topic, which clients cannot create.
METADATA_TOPIC = "__cluster_metadata"
