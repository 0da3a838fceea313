from pathlib import Path

import pytest

from barnabas.policy import AlterConfigPolicy, ConfigResource, ConfigResourceType
from barnabas.policy.loading import PolicyLoadError
from barnabas.policy.rules import AclAction, Rules
from barnabas.policy.rules_file import read_rules
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from support.policies import altered_topic, new_topic

KNOWN = {
    ConfigResourceType.TOPIC: {"retention.ms", "cleanup.policy", "unclean.leader.election.enable"},
    ConfigResourceType.BROKER: {"auto.create.topics.enable"},
}
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "policies" / "policies.yaml"


def rules_of(directory: Path, text: str) -> Rules:
    path = directory / "policies.yaml"
    path.write_text(text)
    return read_rules(path, KNOWN)


def problem(directory: Path, text: str) -> str:
    """Return the error in a file, without the leading key and path."""
    with pytest.raises(PolicyLoadError) as caught:
        rules_of(directory, text)
    head = f"Invalid value '{directory / 'policies.yaml'}' for barnabas.policy.file: "
    assert str(caught.value).startswith(head)
    return str(caught.value).removeprefix(head)


def test_the_example_has_the_described_rules() -> None:
    rules = read_rules(EXAMPLE, KNOWN)
    assert (
        rules.violations_of_creation(new_topic("orders.new", 12, 3, {"cleanup.policy": "compact,delete"}))
        == []
    )
    [bad_name] = rules.violations_of_creation(new_topic("Orders"))
    assert "must match" in bad_name.message
    assert bad_name.message.endswith("(see the platform handbook)")
    assert len(rules.violations_of_creation(new_topic("orders.new", 13, 4, {"retention.ms": "-1"}))) == 3
    assert (
        len(
            rules.violations_of_creation(
                new_topic("orders.new", configs={"unclean.leader.election.enable": "true"})
            )
        )
        == 1
    )
    assert rules.violations_of_creation(new_topic("clicks.web", 200, 1, {"retention.ms": "1"})) == []
    assert len(rules.violations_of_creation(new_topic("clicks.web", 200))) == 1
    [warning] = rules.violations_of_creation(new_topic("experiments.x", 4))
    assert not warning.enforced
    assert rules.violations_of_deletion("payments.p")
    assert rules.violations_of_more_partitions("audit.a", 5) == []
    assert rules.violations_of_alteration(altered_topic("audit.a", retention_ms="1"))
    resource = ConfigResource(ConfigResourceType.BROKER, "")
    altered = AlterConfigPolicy.RequestMetadata(resource, {"auto.create.topics.enable": "true"})
    [broker] = rules.violations_of_alteration(altered)
    assert broker.message.startswith("auto.create.topics.enable of the default of all brokers is 'true'")
    bad = AclBinding(
        ResourceType.GROUP, "g", PatternType.LITERAL, "User:*", "*", AclOperation.WRITE, AclPermission.ALLOW
    )
    assert rules.violations_of_acl(AclAction.CREATE, bad)


def test_the_files_mode_applies_to_rules_without_their_own(tmp_path: Path) -> None:
    text = """
mode: warn
topics:
  - protected: true
  - prefix: hard.
    mode: enforce
    protected: true
"""
    rules = rules_of(tmp_path, text)
    assert [violation.enforced for violation in rules.violations_of_deletion("t")] == [False]
    assert [violation.enforced for violation in rules.violations_of_deletion("hard.t")] == [True]


TOPIC = "topics:\n  - "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("a: [", "line 1: is not YAML: "),
        ("- a", "line 1: the file is a list: must be a mapping (key: value)"),
        ("mode: warm", "line 1: mode is 'warm': must be enforce or warn"),
        ("topic: []", "line 1: unknown key 'topic' in the file; did you mean topics?"),
        (
            "zzz: []",
            "line 1: unknown key 'zzz' in the file; valid are acls, brokers, client_metrics",
        ),
        ("? [a]\n: b", "line 1: a key of the file is a list: must be text"),
        ("topics: 5", "line 1: topics is '5': must be a list ([a, b], or a line for each beginning with -)"),
        ("mode: warn\nmode: warn", "line 2: a key of the file is 'mode': is repeated, first in line 1"),
        (TOPIC + "name: '['", "line 2: topics[0].name is '[': must be a regular expression: "),
        (TOPIC + "prefix:", "line 2: topics[0].prefix is '': must be text"),
        (
            TOPIC + "partitions: {min: 0}",
            "line 2: topics[0].partitions.min is '0': must be a whole number of at least 1",
        ),
        (
            TOPIC + "partitions: {max: many}",
            "line 2: topics[0].partitions.max is 'many': must be a whole number of at least 1",
        ),
        (
            TOPIC + "partitions: {max: 1.5}",
            "line 2: topics[0].partitions.max is '1.5': must be a whole number of at least 1",
        ),
        (
            TOPIC + "partitions: {min: 3, max: 2}",
            "line 2: topics[0].partitions is a mapping: min must be at most max, but 3 is more than 2",
        ),
        (
            TOPIC + "configs: {retention.msec: {max: 1}}",
            "line 2: unknown key 'retention.msec' in topics[0].configs; did you mean retention.ms?",
        ),
        (
            TOPIC + "configs: {retention.ms: {max: !!int x}}",
            "line 2: topics[0].configs.retention.ms.max is 'x': must be a number",
        ),
        (
            TOPIC + "configs: {retention.ms: {max: .nan}}",
            "line 2: topics[0].configs.retention.ms.max is '.nan': must be a number",
        ),
        (
            TOPIC + "configs: {retention.ms: {required: 1}}",
            "line 2: topics[0].configs.retention.ms.required is '1': must be true or false",
        ),
        (
            TOPIC + "configs: {retention.ms: {forbidden: true, max: 1}}",
            "line 2: topics[0].configs.retention.ms is a mapping: must not have other rules beside forbidden: true",
        ),
        (
            TOPIC + "configs: {cleanup.policy: {values: []}}",
            "line 2: topics[0].configs.cleanup.policy.values is a list: must have at least one value",
        ),
        (
            TOPIC + "protected: maybe",
            "line 2: topics[0].protected is 'maybe': must be true, false or a list of delete, add_partitions, ",
        ),
        (
            TOPIC + "protected: [deletion]",
            "line 2: topics[0].protected[0] is 'deletion': must be delete, add_partitions, ",
        ),
        (
            TOPIC + "prefix: a\n  - prefix: a",
            "line 3: topics[1].prefix is 'a': is repeated, first in line 2",
        ),
        ("brokers:\n  - partitions: {max: 1}", "line 2: unknown key 'partitions' in brokers[0]; "),
        ("acls:\n  - because: x", "line 2: acls[0] is a mapping: must have forbid: what must not be created"),
        ("acls:\n  - forbid: {}", "line 2: acls[0].forbid is a mapping: must have at least one key"),
        (
            "acls:\n  - forbid: {operation: any}",
            "line 2: acls[0].forbid.operation is 'any': must be all, read, write, create, ",
        ),
        ("acls:\n  - forbid: {principal: [a]}", "line 2: acls[0].forbid.principal is a list: must be text"),
    ],
)
def test_an_error_has_line_key_value_and_valid_values(tmp_path: Path, text: str, says: str) -> None:
    assert problem(tmp_path, text).startswith(says)


def test_a_missing_file_or_one_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PolicyLoadError, match="cannot be read: No such file or directory"):
        read_rules(tmp_path / "missing.yaml", KNOWN)
    (tmp_path / "latin.yaml").write_bytes(b"mode: \xff")
    with pytest.raises(PolicyLoadError, match="must be in UTF-8"):
        read_rules(tmp_path / "latin.yaml", KNOWN)


def test_long_values_are_truncated_in_errors(tmp_path: Path) -> None:
    assert "xxx...: must be" in problem(tmp_path, f"mode: {'x' * 500}")
