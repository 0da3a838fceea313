"""Apply declared states to a broker, in one run or after interruptions."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from barnabas.base.clock import SystemClock
from barnabas.cli.main import app
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.declared.apply import ChangeStatus
from barnabas.declared.live import whole_state
from barnabas.declared.plan import make_plan
from barnabas.declared.state import ClusterState
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from support.declared import SECURED, LostConnection, another_state, applied, enriched, grown
from support.declared_states import states
from support.documents import ROOT, block_with, code_blocks
from support.process import clean_environment
from support.waiting import until

DECLARED = ROOT / "docs" / "declared.md"

Run = Callable[..., Result]
COMMAND = [sys.executable, "-m", "barnabas"]
#: The failing changes depend on the earlier state: nothing exists that could shrink.
MANY = settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.generate))

pytestmark = pytest.mark.kafka_settings(SECURED)


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str | Path) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "COLUMNS": "200", "WORD": "a word"}
        return CliRunner().invoke(app, [str(each) for each in command], env=environment)

    return invoke


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(SECURED) as broker:
        yield broker


@MANY
@given(states())
def test_one_apply_reaches_any_declared_state(shared: EmbeddedBroker, declared: ClusterState) -> None:
    async def work() -> None:
        async with ClusterClient(shared.bootstrap) as cluster:
            admin = Admin(cluster)
            request = await grown(admin, declared)
            plan, results = await applied(admin, request)
            assert [each for each in results if each.status is not ChangeStatus.DONE] == []
            assert len(results) == len(plan.changes)
            assert (await make_plan(admin, request, SystemClock())).changes == []
            found = await whole_state(admin)
            assert found.acls == declared.acls
            assert found.topics == request.declared.topics
            assert found.quotas == declared.quotas

    asyncio.run(work())


@MANY
@given(states(), st.integers(1, 8), st.booleans())
def test_the_next_apply_completes_an_interrupted_one(
    shared: EmbeddedBroker, declared: ClusterState, at: int, is_delivered: bool
) -> None:
    async def work() -> None:
        async with (
            ClusterClient(shared.bootstrap) as cluster,
            LostConnection(shared.bootstrap, at, is_delivered=is_delivered) as cut,
        ):
            admin = Admin(cluster)
            request = await grown(admin, declared)
            _, results = await applied(Admin(cut), request)
            statuses = [each.status for each in results]
            assert statuses == sorted(statuses, key=list(ChangeStatus).index), (
                "nothing is tried after the connection is lost"
            )
            await applied(admin, request)
            assert (await make_plan(admin, request, SystemClock())).changes == []

    asyncio.run(work())


RICH = another_state(orders_partitions=4)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.yaml"


def apply_process(kafka: EmbeddedBroker, file: Path) -> subprocess.Popen[bytes]:
    environment = clean_environment({"BARNABAS_BOOTSTRAP": kafka.bootstrap, "WORD": "a word"})
    command = [*COMMAND, "apply", str(file), "--yes", "--allow-destroy"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "api", ["AlterUserScramCredentials", "CreateAcls", "DeleteAcls", "DeleteTopics", "DescribeConfigs"]
)
def test_an_apply_that_is_killed_at_a_request_continues_there(
    kafka: EmbeddedBroker, run: Run, file: Path, api: str
) -> None:
    enriched(kafka.bootstrap)
    file.write_text(RICH)
    fault = kafka.delay_next(api, 60_000)
    process = apply_process(kafka, file)
    until(lambda: fault.struck_count)
    process.kill()
    process.wait()
    done = run("apply", file, "--yes", "--allow-destroy")
    assert done.exit_code == 0, done.output
    assert run("plan", file).exit_code == 0
    assert set(kafka.topics()) == {"orders", "fresh"}


def test_an_apply_that_is_killed_repeatedly_completes(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    topics = "".join(f"  t{index}: {{partitions: 100}}\n" for index in range(12))
    file.write_text(f"topics:\n{topics}")
    for count in (1, 6):
        process = apply_process(kafka, file)
        until(lambda least=count: len(kafka.topics()) >= least)  # type: ignore[misc]
        process.kill()
        process.wait()
    assert run("apply", file, "--yes").exit_code == 0
    assert len(kafka.topics()) == 12
    assert run("plan", file).exit_code == 0


# The command line


def test_apply_prints_and_executes_changes(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    file.write_text(RICH)
    done = run("apply", file, "--yes", "--allow-destroy")
    assert done.exit_code == 0, done.output
    assert "~  topic/orders" in done.stdout
    assert done.stdout.endswith(" done\n")
    again = run("apply", file, "--yes")
    assert (again.exit_code, again.stdout) == (0, "No changes: the cluster has the declared state.\n")
    assert "a word" not in done.output


def test_the_confirmation_shows_the_plan(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("topics: {orders: {partitions: 3}}\n")
    monkeypatch.setattr("barnabas.cli.declared.apply._is_terminal", lambda: True)
    refused = run("apply", file, "--json")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "topic/orders" in refused.stderr
    assert refused.stderr.index("2 to create") < refused.stderr.index("Apply?")


def test_nothing_is_deleted_without_allow_destroy(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    file.write_text(RICH)
    refused = run("apply", file, "--yes")
    assert refused.exit_code == 1
    assert "changes are destructive" in refused.output
    assert "--allow-destroy" in refused.output
    unconfirmed = run("apply", file, "--allow-destroy")
    assert unconfirmed.exit_code == 2
    assert "--yes" in unconfirmed.output
    assert "fresh" not in kafka.topics()


@pytest.mark.kafka_settings({"super.users": "", "allow.everyone.if.no.acl.found": "true"})
def test_removing_the_own_permissions_needs_confirmation(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    file.write_text("acls: [{principal: 'User:alice', resource_type: cluster, operations: [alter]}]\n")
    refused = run("apply", file, "--yes", "--allow-destroy")
    assert refused.exit_code == 1
    assert "lock you out" in refused.output
    done = run("apply", file, "--yes", "--allow-lockout", "--allow-destroy")
    assert done.exit_code == 1
    assert "accepted, but could not be verified: CLUSTER_AUTHORIZATION_FAILED" in done.output
    assert run("acls", "list").exit_code == 4


def test_a_failed_change_does_not_stop_others(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    file.write_text("""
topics:
  "no good": {partitions: 1}
  orders: {partitions: 2}
  fresh: {partitions: 2}
  clicks: {configs: {retention.ms: 5, no.such.key: 1}}
groups: {billing: {configs: {consumer.session.timeout.ms: 47000}}}
""")
    done = run("apply", file, "--yes", "--json")
    assert done.exit_code == 1
    statuses = {(each["resource"], each["key"]): each["status"] for each in json.loads(done.stdout)}
    assert {tp for tp, status in statuses.items() if status == "done"} == {
        ("topic/fresh", "partitions"),
        ("topic/fresh", "replication_factor"),
        ("group/billing", "consumer.session.timeout.ms"),
    }
    assert statuses["topic/orders", "partitions"] == statuses["topic/clicks", "no.such.key"] == "skipped"
    assert "5 of 8 changes were not applied, or not confirmed" in done.stderr


def test_a_throttled_change_is_retried(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    file.write_text("acls: [{principal: 'User:alice', resource_type: cluster, operations: [describe]}]\n")
    fault = kafka.fail_next("CreateAcls", ErrorCode.THROTTLING_QUOTA_EXCEEDED, times=2)
    assert run("apply", file, "--yes").exit_code == 0
    assert fault.struck_count == 2


def test_a_password_is_read_from_the_file(kafka: EmbeddedBroker, run: Run, file: Path) -> None:
    enriched(kafka.bootstrap)
    (file.parent / "word").write_text("another\n")
    file.write_text("users: {alice: {SCRAM-SHA-256: {iterations: 8192, password: {file: word}}}}\n")
    done = run("apply", file, "--yes", "--renew-password", "alice")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "1 done")


# Documents


def test_the_documented_state_can_be_applied(kafka: EmbeddedBroker, file: Path) -> None:
    [text] = code_blocks(ROOT / "docs" / "declared.md", "yaml")
    file.write_text(text)
    environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "PASSWORD_ALICE": "a word"}
    for command in (["plan"], ["apply", "--yes"], ["drift"]):
        done = CliRunner().invoke(app, [*command, str(file)], env=environment)
        assert done.exit_code == (2 if command == ["plan"] else 0), done.output
    assert kafka.topics() == {"orders": 6, "clicks": 2}


def test_the_documented_commands_work(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    enriched(kafka.bootstrap)
    block = block_with(DECLARED, "bash", "barnabas export").replace("--watch", "")
    commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = clean_environment({"BARNABAS_BOOTSTRAP": kafka.bootstrap, "PATH": commands})
    done = subprocess.run(
        ["sh", "-euc", block],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("No drift.\n")
