"""What `barnabas quorum` does."""

from barnabas.base.ids import uuid_to_text
from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.client.control import QuorumReplica


def show(bootstrap: str, *, as_json: bool) -> None:
    """Print the quorum."""
    quorum = with_admin(bootstrap, lambda admin: admin.describe_metadata_quorum())
    members = [("voter", each) for each in quorum.voters] + [("observer", each) for each in quorum.observers]
    if as_json:
        told = {
            "leader_id": quorum.leader_id,
            "leader_epoch": quorum.leader_epoch,
            "high_watermark": quorum.high_watermark,
            "nodes": [_as_json(role, each) for role, each in members],
        }
        print_json(told)
        return
    print(f"leader {quorum.leader_id} in epoch {quorum.leader_epoch}, state at {quorum.high_watermark}")
    rows = [
        (each.node_id, role, uuid_to_text(each.directory_id), each.log_end_offset, _addresses(each))
        for role, each in members
    ]
    print_table(("node", "role", "directory", "state at", "addresses"), rows)


def _addresses(replica: QuorumReplica) -> str:
    return " ".join(f"{name}://{address}" for name, address in replica.addresses)


def _as_json(role: str, replica: QuorumReplica) -> dict[str, object]:
    return {
        "node": replica.node_id,
        "role": role,
        "directory_id": uuid_to_text(replica.directory_id),
        "log_end_offset": replica.log_end_offset,
        "addresses": {name: str(address) for name, address in replica.addresses},
    }
