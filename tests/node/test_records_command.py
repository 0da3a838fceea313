"""Errors of `barnabas records delete`, for which the protocol has no messages."""

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


def test_an_offset_behind_the_end_is_reported_with_the_end(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    kafka.produce("t", b"v")
    command = ["records", "delete", "t:0=7", "--bootstrap", kafka.bootstrap]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 1
    assert refused.stderr == (
        "error: records of t-0 before 7 cannot be deleted: the partition ends at 1\n"
        "  try: an offset up to 1, or t:0=end for all records\n"
    )
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).stderr)["error"] == "OFFSET_OUT_OF_RANGE"
