"""Operations of confluent-kafka's admin client on configs, ACLs, SCRAM credentials and leaders."""
# mypy: disable-error-code="attr-defined, no-untyped-call"

from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from interop.python.lines import PATIENCE_S, operation

MECHANISM = ScramMechanism.SCRAM_SHA_256


def offer(admin: AdminClient) -> None:
    """Register the operations of this client."""

    @operation
    def alter_topic_config(topic: str, key: str, value: str | None) -> None:
        change = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(key, value, incremental_operation=change)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        only(admin.incremental_alter_configs([resource]))

    @operation
    def replace_topic_configs(topic: str, configs: dict[str, str]) -> None:
        only(admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config=configs)]))

    @operation
    def create_acl(topic: str, principal: str) -> None:
        only(admin.create_acls([_binding(topic, principal)]))

    @operation
    def acls(topic: str) -> object:
        found = admin.describe_acls(_acls_of(topic)).result(PATIENCE_S)
        return [each.principal for each in found]

    @operation
    def delete_acls(topic: str) -> object:
        return [each.principal for each in only(admin.delete_acls([_acls_of(topic)]))]

    @operation
    def alter_scram(user: str, iterations: int) -> None:
        info = ScramCredentialInfo(MECHANISM, iterations)
        only(admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, b"secret")]))

    @operation
    def scram(user: str) -> object:
        found = only(admin.describe_user_scram_credentials([user])).scram_credential_infos
        return {each.mechanism.name.replace("_", "-"): each.iterations for each in found}

    @operation
    def delete_scram(user: str) -> None:
        only(admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, MECHANISM)]))

    @operation
    def elect_leader(topic: str, partition: int) -> None:
        partitions = [TopicPartition(topic, partition)]
        (error,) = admin.elect_leaders(ElectionType.PREFERRED, partitions).result(PATIENCE_S).values()
        if error is not None:
            raise KafkaException(error)


def only(futures: dict[Any, Any]) -> Any:
    """Return the result of the only future."""
    (future,) = futures.values()
    return future.result(PATIENCE_S)


def _binding(topic: str, principal: str) -> AclBinding:
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(ResourceType.TOPIC, topic, literal, principal, "*", AclOperation.READ, allow)


def _acls_of(topic: str) -> AclBindingFilter:
    literal, any_permission = ResourcePatternType.LITERAL, AclPermissionType.ANY
    return AclBindingFilter(ResourceType.TOPIC, topic, literal, None, None, AclOperation.ANY, any_permission)
