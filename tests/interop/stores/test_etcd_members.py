"""`barnabas cluster status` with three members of etcd, one of which is killed."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.cli.support.failures import FAILED, OK
from barnabas.testing import EmbeddedBroker
from interop import etcd
from support.waiting import until


def test_it_shows_the_members_their_roles_and_that_one_does_not_answer(tmp_path: Path) -> None:
    with (
        etcd.running(tmp_path, 3) as members,
        EmbeddedBroker(settings={"barnabas.store": etcd.url(members)}) as kafka,
    ):

        def status() -> tuple[int, dict[str, Any]]:
            environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap}
            result = CliRunner().invoke(app, ["cluster", "status", "--json"], env=environment)
            return result.exit_code, json.loads(result.stdout)

        exit_code, found = status()
        assert exit_code == OK, found["problems"]
        described = found["metadata_store_members"]
        assert [each["name"] for each in described] == [member.name for member in members]
        assert sorted(each["role"] for each in described) == ["follower", "follower", "leader"]
        assert all(each["size_bytes"] > 0 for each in described)
        members[2].kill()
        until(lambda: status()[0] == FAILED)
        _, found = status()
        assert [each["role"] is None for each in found["metadata_store_members"]] == [False, False, True]
        [problem] = found["problems"]
        assert problem.startswith(
            f"the metadata store at http://127.0.0.1:{members[2].port} is unavailable: "
        )
