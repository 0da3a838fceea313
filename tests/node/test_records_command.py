"""`barnabas records delete` on a topic that is only compacted."""

import json

from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker


def test_deleting_records_of_a_compacted_topic_fails_with_a_hint(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("c", configs={"cleanup.policy": "compact"})
    kafka.produce("c", b"v", key=b"k")
    command = ["records", "delete", "c:0=1", "--bootstrap", kafka.bootstrap]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 4
    assert (
        "error: records of c-0 cannot be deleted: cleanup.policy of topic 'c' does not contain 'delete'"
        in refused.stderr
    )
    error = json.loads(CliRunner().invoke(app, [*command, "--json"]).stderr)
    assert error["error"] == "POLICY_VIOLATION"
    assert "'barnabas configs set topic c cleanup.policy+=delete'" in error["hint"]

    alter = ["configs", "set", "topic", "c", "cleanup.policy+=delete", "--bootstrap", kafka.bootstrap]
    assert CliRunner().invoke(app, alter).exit_code == 0
    assert CliRunner().invoke(app, command).stdout == "c-0: starts at 1\n"
