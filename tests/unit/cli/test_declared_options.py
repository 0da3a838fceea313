from pathlib import Path

from barnabas.cli.declared.options import plan_request
from barnabas.cli.support.login import command_config
from barnabas.declared.state import EVERYTHING


def test_the_principal_of_a_client_certificate_is_not_known(tmp_path: Path) -> None:
    file, properties = tmp_path / "cluster.yaml", tmp_path / "client.properties"
    file.write_text("topics: {orders: {partitions: 1}}\n")
    assert plan_request(file, EVERYTHING).principal == "User:ANONYMOUS"
    properties.write_text("security.protocol=SSL\nssl.keystore.location=/alice.p12\n")
    with command_config(properties):
        assert plan_request(file, EVERYTHING).principal is None
