"""Operations of kafka-python's admin client on configs, ACLs, SCRAM credentials, leaders and replicas."""
# mypy: disable-error-code="import-untyped"

from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.errors import NoError, for_code

from interop.python.lines import operation

MECHANISM = ScramMechanism.SCRAM_SHA_256
PREFERRED = 0


class CredentialError(Exception):
    """kafka-python returns the broker's message without its code."""


def offer(admin: KafkaAdminClient) -> None:
    """Register the operations of this client."""
    _offer_configs_and_acls(admin)
    _offer_credentials(admin)
    _offer_leaders_and_replicas(admin)


def _offer_configs_and_acls(admin: KafkaAdminClient) -> None:
    @operation
    def alter_topic_config(topic: str, key: str, value: str | None) -> None:
        change = (AlterConfigOp.DELETE, None) if value is None else (AlterConfigOp.SET, value)
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: change})
        outcome = admin.alter_configs([resource], raise_on_unknown=False)["topic"][topic]
        if outcome != "OK":
            raise _as_error(outcome)

    @operation
    def create_acl(topic: str, principal: str) -> None:
        pattern = ResourcePattern(ResourceType.TOPIC, topic)
        created = admin.create_acls(
            [ACL(principal, "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)]
        )
        for _, error in created["failed"]:
            raise error

    @operation
    def acls(topic: str) -> object:
        found, error = admin.describe_acls(_acls_of(topic))
        _check(error)
        return [each.principal for each in found]

    @operation
    def delete_acls(topic: str) -> object:
        [(_, deleted, error)] = admin.delete_acls([_acls_of(topic)])
        _check(error)
        return [each.principal for each in deleted]


def _offer_credentials(admin: KafkaAdminClient) -> None:
    @operation
    def alter_scram(user: str, iterations: int) -> None:
        _alter(admin, UserScramCredentialUpsertion(user, MECHANISM, "secret", iterations))

    @operation
    def scram(user: str) -> object:
        [found] = admin.describe_user_scram_credentials([user]).values()
        return {
            each["mechanism"].name.replace("_", "-"): each["iterations"] for each in found["credential_infos"]
        }

    @operation
    def delete_scram(user: str) -> None:
        _alter(admin, UserScramCredentialDeletion(user, MECHANISM))


def _offer_leaders_and_replicas(admin: KafkaAdminClient) -> None:
    @operation
    def elect_leader(topic: str, partition: int) -> None:
        answer = admin.elect_leaders(PREFERRED, {topic: [partition]}, raise_errors=False)
        [outcome] = [part for each in answer.replica_election_results for part in each.partition_result]
        _check(for_code(outcome.error_code))

    @operation
    def reassign(topic: str, partition: int, replicas: list[int]) -> None:
        assigned = TopicPartition(topic, partition)
        error = admin.alter_partition_reassignments({assigned: replicas})[assigned]
        if error is not None:
            raise error

    @operation
    def reassignments(topic: str) -> object:
        return [each.partition for each in admin.list_partition_reassignments({topic: [0]})]

    @operation
    def log_dirs(topic: str, broker: int) -> object:
        [described] = admin.describe_log_dirs(brokers=[broker])
        directories = described["log_dirs"]
        for directory in directories:
            _check(for_code(directory["error_code"]))
        topics = [each for directory in directories for each in directory["topics"]]
        return [
            part["partition_index"] for each in topics if each["name"] == topic for part in each["partitions"]
        ]


def _alter(admin: KafkaAdminClient, alteration: Any) -> None:
    [error] = admin.alter_user_scram_credentials([alteration]).values()
    if error is not None:
        raise CredentialError(error)


def _as_error(text: str) -> Exception:
    """Parse the error that kafka-python formats as text: "[Error 40] InvalidConfigurationError: ..."."""
    code = int(text.removeprefix("[Error ").partition("]")[0])
    error: Exception = for_code(code)(text)
    return error


def _check(error: Any) -> None:
    if error is not NoError:
        raise error


def _acls_of(topic: str) -> ACLFilter:
    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    return ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
