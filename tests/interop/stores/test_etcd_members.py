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
        servers = found["metadata_store_servers"]
        assert [server["name"] for server in servers] == [member.name for member in members]
        assert sorted(server["role"] for server in servers) == ["follower", "follower", "leader"]
        assert all(server["size_bytes"] > 0 for server in servers)
        members[2].kill()
        until(lambda: status()[0] == FAILED)
        _, found = status()
        assert [server["role"] is None for server in found["metadata_store_servers"]] == [False, False, True]
        [problem] = found["problems"]
        assert problem.startswith(
            f"the metadata store at http://127.0.0.1:{members[2].port} does not serve: "
        )
