from pathlib import Path

from barnabas.declared.parser import read_state
from barnabas.declared.state import ClusterState, Credential, ResourceFilter
from barnabas.declared.updating import updated
from barnabas.wire.scram import ScramMechanism


def test_a_new_user_does_not_get_the_variable_of_one_that_is_left_out(tmp_path: Path) -> None:
    text = "users:\n  team-a:\n    SCRAM-SHA-256: {iterations: 4096, password: {env: PASSWORD_TEAM_A}}\n"
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    live = ClusterState(users={"team.a": {ScramMechanism.SCRAM_SHA_256: Credential(4096)}})
    file.write_text(updated(text, read_state(file), live, ResourceFilter(include=("user/team.a",))))
    credentials = read_state(file).users
    variables = [each[ScramMechanism.SCRAM_SHA_256].password for each in credentials.values()]
    assert credentials.keys() == {"team-a", "team.a"}
    assert len(set(variables)) == 2
