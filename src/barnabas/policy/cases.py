"""Test cases for policies: a file of changes with the expected result of each."""

import enum
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.base.yaml_nodes import YamlNode, read_yaml
from barnabas.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    ConfigResourceType,
    CreateTopicPolicy,
)
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.policy.rules import AclAction
from barnabas.policy.rules_file import read_acl
from barnabas.wire.acls import WILDCARD, AclBinding, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError


class CaseStatus(enum.StrEnum):
    """The policies' decision on a change."""

    ALLOWED = "allowed"
    WARNED = "warned"  #: allowed, but a rule in mode warn objects
    REFUSED = "refused"
    FAILED = "failed"  #: a policy raised something other than PolicyViolation, or timed out


Ask = Callable[[Policies], Awaitable[None]]


class Case(NamedTuple):
    """A change and its expected result."""

    line: int
    change: str  #: for people
    ask: Ask
    expected: CaseStatus
    expected_reason: str  #: expected part of the reason


class CaseResult(NamedTuple):
    """The result of one change, with its reason."""

    result: CaseStatus
    why: str

    def is_as_expected(self, case: Case) -> bool:
        """Whether status and reason are as expected."""
        return self.result is case.expected and case.expected_reason in self.why


class Trial:
    """Policies loaded as a broker does, but without a broker. An async context manager."""

    def __init__(self, settings: PolicySettings) -> None:
        self._warnings: list[str] = []
        self._policies = Policies(settings, self._warnings.append)

    async def __aenter__(self) -> "Trial":
        """Load the policies.

        :raises PolicyLoadError: When a policy cannot be loaded.
        """
        await self._policies.load()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._policies.close()

    async def outcome(self, ask: Ask) -> CaseResult:
        """The policies' result."""
        self._warnings.clear()
        try:
            await ask(self._policies)
        except KafkaError as error:
            is_refusal = error.code is ErrorCode.POLICY_VIOLATION
            return CaseResult(CaseStatus.REFUSED if is_refusal else CaseStatus.FAILED, error.message)
        return CaseResult(
            CaseStatus.WARNED if self._warnings else CaseStatus.ALLOWED, "; ".join(self._warnings)
        )


class Counts(NamedTuple):
    """Default partition count and replication factor of a new topic."""

    partitions: int = 1
    replication_factor: int = 1


def read_cases(path: Path, defaults: Counts) -> list[Case]:
    """The cases in a file.

    :raises YamlError: With line, key, value and what would be right.
    """
    return read_yaml(path, lambda node: [_case(item, defaults) for item in node.items()])


def _case(node: YamlNode, defaults: Counts) -> Case:
    found = node.mapping((*_READERS, "expect", "says"))
    changes = [name for name in found if name in _READERS]
    if len(changes) != 1:
        node.fail(f"must have one change, of {', '.join(_READERS)}")
    if "expect" not in found:
        node.fail("must have expect: allowed, refused or warned")
    [name] = changes
    change, ask = _READERS[name](found[name], defaults)
    return Case(
        line=node.node.start_mark.line + 1,
        change=f"{name.replace('_', ' ')} {change}",
        ask=ask,
        expected=CaseStatus(found["expect"].word(("allowed", "refused", "warned"))),
        expected_reason=found["says"].text() if "says" in found else "",
    )


def _fields(node: YamlNode, required: Collection[str], optional: Collection[str] = ()) -> dict[str, YamlNode]:
    found = node.mapping((*required, *optional))
    missing = [name for name in required if name not in found]
    if missing:
        node.fail(f"must have {', '.join(missing)}")
    return found


def _create_topic(node: YamlNode, defaults: Counts) -> tuple[str, Ask]:
    optional = ("partitions", "replication_factor", "assignments", "configs")
    found = _fields(node, ("topic",), optional)
    by_hand = "assignments" in found

    def count(name: str, default: int) -> int | None:
        return None if by_hand else found[name].whole(1) if name in found else default

    metadata = CreateTopicPolicy.RequestMetadata(
        topic=found["topic"].text(),
        num_partitions=count("partitions", defaults.partitions),
        replication_factor=count("replication_factor", defaults.replication_factor),
        replicas_assignments=_assignments(found["assignments"]) if by_hand else None,
        configs={key: each.text() for key, each in found["configs"].mapping().items()}
        if "configs" in found
        else {},
    )
    return metadata.topic, lambda policies: policies.check_create_topic(metadata)


def _assignments(node: YamlNode) -> dict[int, list[int]]:
    return {
        int(index) if index.isdecimal() else each.fail("must have a partition's number as its key"): [
            broker.whole(0) for broker in each.items()
        ]
        for index, each in node.mapping().items()
    }


def _delete_topic(node: YamlNode, _: Counts) -> tuple[str, Ask]:
    topic = _fields(node, ("topic",))["topic"].text()

    async def ask(policies: Policies) -> None:
        policies.check_delete_topic(topic)

    return topic, ask


def _create_partitions(node: YamlNode, _: Counts) -> tuple[str, Ask]:
    found = _fields(node, ("topic", "partitions"))
    topic, count = found["topic"].text(), found["partitions"].whole(1)

    async def ask(policies: Policies) -> None:
        policies.check_create_partitions(topic, count)

    return f"{topic} to {count}", ask


_RESOURCE_TYPES = {
    kind.name.lower(): kind for kind in ConfigResourceType if kind is not ConfigResourceType.UNKNOWN
}


def _alter_config(node: YamlNode, _: Counts) -> tuple[str, Ask]:
    found = _fields(node, ("configs",), (*_RESOURCE_TYPES, "removed"))
    resource_fields = [name for name in found if name in _RESOURCE_TYPES]
    if len(resource_fields) != 1:
        node.fail(f"must have one bearer of configs, of {', '.join(_RESOURCE_TYPES)}")
    resource = ConfigResource(_RESOURCE_TYPES[resource_fields[0]], found[resource_fields[0]].text())
    configs = {key: None if each.is_null else each.text() for key, each in found["configs"].mapping().items()}
    removed = [item.text() for item in found["removed"].items()] if "removed" in found else []
    altered = AlterConfigPolicy.RequestMetadata(resource, configs)
    return f"of {resource_fields[0]} {resource.name}", lambda policies: policies.check_alter_config(
        altered, removed
    )


#: Defaults of an ACL in a case.
_ACL_DEFAULTS = {
    "resource_type": ResourceType.TOPIC,
    "pattern_type": PatternType.LITERAL,
    "host": WILDCARD,
    "permission": AclPermission.ALLOW,
}


def _acl(node: YamlNode, action: AclAction) -> tuple[str, Ask]:
    found: dict[str, Any] = read_acl(node)
    missing = [name for name in ("resource_name", "principal", "operation") if name not in found]
    if missing:
        node.fail(f"must have {', '.join(missing)}")
    acl = AclBinding(**{**_ACL_DEFAULTS, **found})

    async def ask(policies: Policies) -> None:
        policies.check_acl(action, acl)

    return f"{acl.operation.name} for {acl.principal} on {acl.resource_name}", ask


_READERS: dict[str, Callable[[YamlNode, Counts], tuple[str, Ask]]] = {
    "create_topic": _create_topic,
    "create_partitions": _create_partitions,
    "delete_topic": _delete_topic,
    "alter_config": _alter_config,
    "create_acl": lambda node, _: _acl(node, AclAction.CREATE),
    "delete_acl": lambda node, _: _acl(node, AclAction.DELETE),
}
