"""`barnabas export` and `plan` against a broker."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from support.declared import SECURED, enriched

Run = Callable[..., Result]

pytestmark = pytest.mark.kafka_settings(SECURED)


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str | Path) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "COLUMNS": "200"}
        return CliRunner().invoke(app, [str(each) for each in command], env=environment)

    return invoke


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.yaml"


def changes(result: Result) -> dict[tuple[str, str], tuple[Any, Any]]:
    assert result.exit_code in (0, 2), result.output
    found = json.loads(result.stdout)["changes"]
    return {(each["resource"], each["key"]): (each["before"], each["after"]) for each in found}


def test_the_plan_after_an_export_is_empty(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    exported = run("export")
    assert exported.exit_code == 0, exported.output
    file.write_text(exported.stdout)
    planned = run("plan", file)
    assert (planned.exit_code, planned.stdout) == (0, "No changes: the cluster has the declared state.\n")
    file.write_text(
        "prune: [topics, acls, quotas, users, groups, brokers, client_metrics, configs]\n" + exported.stdout
    )
    assert changes(run("plan", file, "--json")) == {}
    assert run("export").stdout == exported.stdout
    assert json.loads(run("export", "--json").stdout)["topics"]["orders"]["partitions"] == 3


def test_brokers_without_dynamic_configs_are_not_exported(run: Run, file: Path) -> None:
    assert run("export").stdout == "{}\n"
    file.write_text("brokers:\n  1: {}\n  2: {expect: {num.io.threads: 8}}  # mine\n")
    brought = run("export", "--into", file)
    assert (brought.exit_code, file.read_text()) == (
        0,
        "brokers:\n  2: {expect: {num.io.threads: 8}}  # mine\n",
    )
    assert run("configs", "set", "broker", "1", "log.cleaner.threads=2").exit_code == 0
    assert json.loads(run("export", "--json").stdout) == {
        "brokers": {"1": {"configs": {"log.cleaner.threads": 2}}}
    }


def test_the_plan_shows_each_key_before_and_after(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    own = kafka.server.broker.broker_id
    file.write_text(f"""
topics:
  orders:
    partitions: 6
    configs: {{retention.ms: 90000000, segment.ms: 3600000}}
  fresh: {{partitions: 2, configs: {{cleanup.policy: [compact, delete]}}}}
acls:
  - {{principal: User:carol, resource_type: topic, resource_name: orders, operations: [read]}}
quotas:
  - {{entity: {{user: alice}}, values: {{producer_byte_rate: 5, consumer_byte_rate: 7}}}}
users:
  alice: {{SCRAM-SHA-256: {{iterations: 4096, password: {{env: HOME}}}}}}
groups: {{billing: {{configs: {{consumer.session.timeout.ms: null}}}}}}
brokers:
  default: {{configs: {{log.retention.ms: 172800000}}}}
  {own}: {{configs: {{log.cleaner.threads: 3}}, expect: {{num.io.threads: 99}}}}
""")
    planned = run("plan", file, "--json")
    assert planned.exit_code == 2
    assert changes(planned) == {
        ("topic/orders", "partitions"): (3, 6),
        ("topic/orders", "retention.ms"): ("86400000", "90000000"),
        ("topic/orders", "segment.ms"): (None, "3600000"),
        ("topic/fresh", "partitions"): (None, 2),
        ("topic/fresh", "replication_factor"): (None, "broker's default"),
        ("topic/fresh", "cleanup.policy"): (None, "compact,delete"),
        ("topic/orders", "acl User:carol ALLOW READ from *"): (None, True),
        ("quota/user=alice", "consumer_byte_rate"): (None, 7.0),
        ("quota/user=alice", "producer_byte_rate"): (1048576.0, 5.0),
        ("user/alice", "SCRAM-SHA-256"): ({"iterations": 8192}, {"iterations": 4096}),
        ("group/billing", "consumer.session.timeout.ms"): ("50000", None),
        (f"broker/{own}", "log.cleaner.threads"): ("2", "3"),
        (f"broker/{own}", "num.io.threads"): ("8", "99"),
    }
    table = run("plan", file).stdout
    assert "~  topic/orders" in table
    assert "warning: topic/orders partitions: 50% of keys will move to another partition" in table
    assert "barnabas jobs rekey" in table
    assert "6 to create, 5 to alter, 1 to delete, 1 to expect" in table


def test_deletions_are_marked(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    for _ in range(3):
        kafka.produce("orders", b"x" * 100, b"key", timestamp_ms=1)
    file.write_text("""
prune: [topics, acls, users]
topics:
  orders: {configs: {retention.ms: 1000, retention.bytes: 10, cleanup.policy: delete}}
  clicks: {configs: {retention.ms: 1000}}
acls: []
users: {}
""")
    found = json.loads(run("plan", file, "--json").stdout)["changes"]
    destructive = {(each["resource"], each["key"].split()[0]) for each in found if each["destructive"]}
    assert destructive == {
        ("topic/orders", "retention.ms"),
        ("topic/orders", "retention.bytes"),
        ("topic/orders", "cleanup.policy"),
        ("topic/plain", "partitions"),
        ("topic/orders", "acl"),
        ("group/team-*", "acl"),
        ("cluster/kafka-cluster", "acl"),
        ("user/alice", "SCRAM-SHA-256"),
        ("user/bob", "SCRAM-SHA-512"),
    }
    printed = run("plan", file).stdout
    assert "destructive: topic/orders retention.ms: deletes about 3 records" in printed
    assert "note: topic/clicks retention.ms: deletes no record that exists now" in printed


def test_impossible_changes_are_reported_with_the_brokers_message(
    kafka: EmbeddedBroker, run: Run, file: Path
) -> None:
    enriched(kafka.bootstrap)
    file.write_text("""
topics:
  "no good": {partitions: 1}
  orders: {partitions: 2, replication_factor: 2, configs: {retention.ms: soon}}
  clicks: {configs: {no.such.key: 1}}
users: {carol: {SCRAM-SHA-256: {password: {env: NOT_SET_ANYWHERE}}}}
quotas: [{entity: {user: alice}, values: {no_such_quota: 1}}]
brokers: {77: {configs: {log.cleaner.threads: 3}}}
""")
    found = json.loads(run("plan", file, "--json").stdout)["changes"]
    diagnostics = {(each["resource"], each["key"]): each["diagnostics"][-1] for each in found}
    assert {each["level"] for each in diagnostics.values()} == {"impossible"}
    assert "INVALID_TOPIC_EXCEPTION" in diagnostics["topic/no good", "partitions"]["text"]
    assert "the number of partitions cannot be reduced" in diagnostics["topic/orders", "partitions"]["text"]
    assert "barnabas reassignments" in diagnostics["topic/orders", "replication_factor"]["text"]
    assert "INVALID_CONFIG" in diagnostics["topic/orders", "retention.ms"]["text"]
    assert "no.such.key" in diagnostics["topic/clicks", "no.such.key"]["text"]
    assert "NOT_SET_ANYWHERE" in diagnostics["user/carol", "SCRAM-SHA-256"]["text"]
    assert "no_such_quota" in diagnostics["quota/user=alice", "no_such_quota"]["text"]
    assert "77" in diagnostics["broker/77", "log.cleaner.threads"]["text"]


def test_the_live_state_is_read_again_when_it_changed_meanwhile(
    kafka: EmbeddedBroker, run: Run, file: Path
) -> None:
    kafka.create_topic("orders", partitions=3)
    file.write_text("topics: {orders: {partitions: 4}}")
    kafka.fail_next("CreatePartitions", "INVALID_PARTITIONS")
    planned = json.loads(run("plan", file, "--json").stdout)
    assert planned["summary"]["impossible"] == 0
    kafka.fail_next("CreatePartitions", "INVALID_PARTITIONS", times=99)
    planned = json.loads(run("plan", file, "--json").stdout)
    assert planned["summary"]["impossible"] == 1


@pytest.mark.kafka_settings({"super.users": "", "allow.everyone.if.no.acl.found": "true"})
def test_removing_the_own_permissions_is_a_warning(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    file.write_text("""
acls: [{principal: User:alice, resource_type: cluster, operations: [describe]}]
""")
    planned = json.loads(run("plan", file, "--json").stdout)
    [found] = planned["changes"]
    assert found["diagnostics"] == [
        {
            "level": "lockout",
            "text": "User:ANONYMOUS applies this plan, and could then ALTER the cluster only as a super user",
        }
    ]
    assert (planned["summary"]["lockout"], planned["summary"]["destructive"]) == (1, 0)


def test_a_plan_can_be_limited_to_some_resources(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    tree = json.loads(
        run("export", "--include", "topic/o*", "-i", "user/*", "-x", "user/bob", "--json").stdout
    )
    assert list(tree) == ["topics", "acls", "users"]
    assert list(tree["topics"]) == ["orders"]
    assert list(tree["users"]) == ["alice"]
    assert list(json.loads(run("export", "-s", "client-metrics", "--json").stdout)) == ["client_metrics"]
    file.write_text("prune: [topics]\ntopics: {orders: {partitions: 4}}\n")
    assert set(changes(run("plan", file, "--json", "-x", "topic/p*"))) == {
        ("topic/orders", "partitions"),
        ("topic/clicks", "partitions"),
    }


def test_passwords_are_set_again_on_request(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    (file.parent / "secret").write_text("new-secret\n")
    file.write_text("users: {alice: {SCRAM-SHA-256: {password: {file: secret}}}}\n")
    assert run("plan", file).exit_code == 0
    planned = run("plan", file, "--renew-password", "al*")
    assert planned.exit_code == 2
    assert "new-secret" not in planned.output


def test_error_messages_contain_no_secret(run: Run, file: Path) -> None:
    (file.parent / "secret").write_text("hunter2\n")
    file.write_text("""
topics: {orders: {configs: {retention.ms: {file: secret}}}}
groups: {billing: {configs: {consumer.session.timeout.ms: {file: secret}}}}
brokers: {1: {configs: {log.cleaner.threads: {file: secret}}}}
client_metrics: {lag: {configs: {match: {file: secret}}}}
""")
    for command in (["plan"], ["plan", "--json"], ["apply", "--yes"], ["apply", "--yes", "--json"]):
        refused = run(command[0], file, *command[1:])
        assert "Invalid value '(hidden)' for retention.ms" in refused.output
        assert "hunter2" not in refused.output


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--include=orders", "invalid pattern 'orders'"),
        ("--exclude=topics/orders", "invalid pattern 'topics/orders'"),
        ("--include=topic/ordres", "the filters match no declared resource"),
        ("--section=users", "the filters match no declared resource"),
        ("--renew-password=alise", "--renew-password alise: no matching user is declared"),
    ],
)
def test_a_filter_without_matches_is_an_error(run: Run, file: Path, option: str, says: str) -> None:
    file.write_text("topics: {orders: {partitions: 1}}\n")
    chosen = run("plan", file, option)
    assert chosen.exit_code == 1
    assert says in chosen.output
    assert run("apply", file, option, "--yes").exit_code == 2
    assert run("plan", file, "--include", "*/orders", "-x", "group/*").exit_code == 2


def test_a_partition_without_visible_trash_limits_is_reported(
    kafka: EmbeddedBroker, run: Run, file: Path
) -> None:
    enriched(kafka.bootstrap)
    file.write_text("topics: {orders: {configs: {retention.ms: 1000}}}\n")
    kafka.fail_next("ListOffsets", "UNKNOWN_SERVER_ERROR", times=3)
    [change] = json.loads(run("plan", file, "--json").stdout)["changes"]
    assert change["destructive"], change
    assert "does not report its sizes and offsets" in change["diagnostics"][0]["text"]


def test_failures_and_differences_have_different_exit_codes(run: Run, file: Path) -> None:
    assert run("plan", file).exit_code == 3
    file.write_text("topics: {orders: {partitions: none}}\n")
    failed = run("plan", file)
    assert failed.exit_code == 1
    assert f"{file}: line 1: topics.orders.partitions is 'none': must be a whole number" in failed.output
    file.write_text("topics: {orders: {partitions: 1}}\n")
    assert run("plan", file, "--bootstrap", "127.0.0.1:1").exit_code == 5


def test_a_file_is_updated_and_keeps_its_comments(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    file.write_text("""\
# The shop's cluster.
prune: [topics]
topics:
  # paid ones too
  orders:
    partitions: 1   # grew
    configs:
      retention.ms: 1000   # a second
      cleanup.policy: [compact, delete]   # as it is
  gone: {partitions: 2}
acls:
  # alice is in the shop
  - {principal: "User:alice", resource_type: topic, resource_name: orders, operations: [write, read]}
  - {principal: "User:gone", resource_type: topic, resource_name: orders, operations: [read]}
users:
  alice:
    SCRAM-SHA-256: {iterations: 8192, password: {file: alice-word}}
quotas:
  - entity: {user: alice}
    values: {producer_byte_rate: 1048576}   # a MiB
""")
    done = run("export", "--into", file)
    assert (done.exit_code, done.stdout) == (0, f"{file}: updated\n")
    text = file.read_text()
    for kept in (
        "# The shop's cluster.\nprune: [topics]\n",
        "  # paid ones too\n  orders:\n    partitions: 3   # grew\n",
        "      retention.ms: 86400000   # a second\n",
        "      cleanup.policy: [compact, delete]   # as it is\n",
        "  # alice is in the shop\n  - {principal",
        "password: {file: alice-word}",
        "# a MiB\n",
    ):
        assert kept in text, text
    assert "gone" not in text
    assert run("plan", file).exit_code == 0
    assert run("export", "--into", file).stdout == f"{file}: already up to date\n"
    assert file.read_text() == text


def test_an_updated_file_keeps_its_mode_and_links(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    real = file.with_name("real.yaml")
    real.write_bytes(b"# mine\r\ntopics:\r\n  plain: {partitions: 1}   # few\r\n")
    real.chmod(0o640)
    file.symlink_to(real)
    assert run("export", "--into", file, "-i", "topic/plain").exit_code == 0
    assert file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    lines = real.read_bytes().split(b"\r\n")
    assert lines[:2] == [b"# mine", b"topics:"]
    assert b"\n" not in b"".join(lines)
