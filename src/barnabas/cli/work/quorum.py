"""Implementation of `barnabas quorum`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from barnabas.base.ids import uuid_from_text, uuid_to_text
from barnabas.cli.options import key_value_pairs
from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster_control import QuorumReplica
from barnabas.client.admin.voters import QuorumVoter, Voters
from barnabas.client.core.address import BrokerAddress, parse_bootstrap


def describe(bootstrap: str, *, as_json: bool) -> None:
    """Print the metadata quorum."""
    quorum = with_admin(bootstrap, lambda admin: admin.describe_metadata_quorum())
    replicas = [("voter", voter) for voter in quorum.voters]
    replicas += [("observer", observer) for observer in quorum.observers]
    if as_json:
        description = {
            "leader_id": quorum.leader_id,
            "leader_epoch": quorum.leader_epoch,
            "high_watermark": quorum.high_watermark,
            "nodes": [_as_json(role, replica) for role, replica in replicas],
        }
        print_json(description)
        return
    print(f"leader {quorum.leader_id}, epoch {quorum.leader_epoch}, high watermark {quorum.high_watermark}")
    rows = [
        (
            replica.node_id,
            role,
            uuid_to_text(replica.directory_id),
            replica.log_end_offset,
            _addresses(replica),
        )
        for role, replica in replicas
    ]
    print_table(("node", "role", "directory", "log end offset", "addresses"), rows)


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


def add_voter(bootstrap: str, node: int, directory: str, endpoints: Sequence[str], *, as_json: bool) -> None:
    """Add a voter, and print that.

    :raises ValueError: If the directory id or an endpoint is not valid.
    :raises KafkaError: If the node cannot become a voter.
    """
    addresses = _endpoints(endpoints)
    _change(bootstrap, node, directory, lambda admin, voter: Voters(admin.cluster).add(voter, addresses))
    _print_done(node, directory, "added", as_json=as_json)


def remove_voter(bootstrap: str, node: int, directory: str, *, as_json: bool) -> None:
    """Remove a voter, and print that.

    :raises ValueError: If the directory id is not valid.
    :raises KafkaError: VOTER_NOT_FOUND and other errors.
    """
    _change(bootstrap, node, directory, lambda admin, voter: Voters(admin.cluster).remove(voter))
    _print_done(node, directory, "removed", as_json=as_json)


def update_voter(
    bootstrap: str, node: int, directory: str, endpoints: Sequence[str], *, as_json: bool
) -> None:
    """Update the addresses of a voter, and print that.

    :raises ValueError: If the directory id or an endpoint is not valid.
    :raises KafkaError: VOTER_NOT_FOUND and other errors.
    """
    addresses = _endpoints(endpoints)

    async def update(admin: Admin, voter: QuorumVoter) -> None:
        quorum = await admin.describe_metadata_quorum()
        await Voters(admin.cluster).update(voter, addresses, quorum)

    _change(bootstrap, node, directory, update)
    _print_done(node, directory, "updated", as_json=as_json)


def _change(
    bootstrap: str, node: int, directory: str, change: Callable[[Admin, QuorumVoter], Awaitable[None]]
) -> None:
    voter = QuorumVoter(node, uuid_from_text(directory))
    with_admin(bootstrap, lambda admin: change(admin, voter))


def _endpoints(texts: Sequence[str]) -> Mapping[str, BrokerAddress]:
    pairs = key_value_pairs(list(texts), "LISTENER=HOST:PORT")
    return {name: parse_bootstrap(address)[0] for name, address in pairs}


def _print_done(node: int, directory: str, verb: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"node": node, "directory_id": directory, "done": verb})
    else:
        print(f"{node}: {verb}")
