"""`barnabas quorum`: describe the metadata quorum, change its voters."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated

import typer

from barnabas.base.ids import uuid_from_text, uuid_to_text
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import print_json, print_table
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster_control import QuorumReplica
from barnabas.client.admin.voters import QuorumVoter, Voters
from barnabas.client.core.address import BrokerAddress, parse_bootstrap

Node = Annotated[int, typer.Argument(metavar="NODE", min=0, help="Id of the node.", show_default=False)]
Directory = Annotated[
    str,
    typer.Argument(
        metavar="DIRECTORY_ID", help="Directory id of the node, as shown by 'describe'.", show_default=False
    ),
]
Endpoints = Annotated[
    list[str],
    typer.Argument(
        metavar="LISTENER=HOST:PORT...",
        help="Addresses of the node's controller, by listener name.",
        show_default=False,
    ),
]


@command("describe", example="quorum describe", apis=("DescribeQuorum",), needs=("describe cluster",))
def describe_quorum(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show the voters and observers of the metadata quorum, the leader, and their log end offsets."""
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


@command(
    "add-voter",
    example="quorum add-voter 3 AAECAwQFBgcICQoLDA0ODw CONTROLLER=host3:9093",
    apis=("AddRaftVoter",),
    needs=("alter cluster",),
)
def add_voter(
    node: Node,
    directory: Directory,
    endpoints: Endpoints,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Add a running node to the voters."""
    addresses = _parse_endpoints(endpoints)
    _change(bootstrap, node, directory, lambda admin, voter: Voters(admin.cluster).add(voter, addresses))
    _print_done(node, directory, "added", as_json=as_json)


@command(
    "remove-voter",
    example="quorum remove-voter 3 AAECAwQFBgcICQoLDA0ODw",
    apis=("RemoveRaftVoter",),
    needs=("alter cluster",),
)
def remove_voter(
    node: Node, directory: Directory, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Remove a node from the voters."""
    _change(bootstrap, node, directory, lambda admin, voter: Voters(admin.cluster).remove(voter))
    _print_done(node, directory, "removed", as_json=as_json)


@command(
    "update-voter",
    example="quorum update-voter 3 AAECAwQFBgcICQoLDA0ODw CONTROLLER=host3:9094",
    apis=("DescribeQuorum", "UpdateRaftVoter"),
    needs=("describe cluster", "cluster-action cluster"),
)
def update_voter(
    node: Node,
    directory: Directory,
    endpoints: Endpoints,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Update the addresses of a voter; Apache Kafka accepts this only on the listeners of its controllers."""
    addresses = _parse_endpoints(endpoints)

    async def update(admin: Admin, voter: QuorumVoter) -> None:
        quorum = await admin.describe_metadata_quorum()
        await Voters(admin.cluster).update(voter, addresses, quorum)

    _change(bootstrap, node, directory, update)
    _print_done(node, directory, "updated", as_json=as_json)


def _change(
    bootstrap: str, node: int, directory: str, change: Callable[[Admin, QuorumVoter], Awaitable[None]]
) -> None:
    """Call `change` for a voter.

    :raises ValueError: If the directory id is not valid.
    """
    voter = QuorumVoter(node, uuid_from_text(directory))
    with_admin(bootstrap, lambda admin: change(admin, voter))


def _parse_endpoints(texts: Sequence[str]) -> Mapping[str, BrokerAddress]:
    """Parse LISTENER=HOST:PORT arguments.

    :raises CommandError: For an argument without an equals sign.
    :raises ValueError: For an invalid address.
    """
    pairs = key_value_pairs(list(texts), "LISTENER=HOST:PORT")
    return {name: parse_bootstrap(address)[0] for name, address in pairs}


def _print_done(node: int, directory: str, verb: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"node": node, "directory_id": directory, "done": verb})
    else:
        print(f"{node}: {verb}")


app = command_group(describe_quorum, add_voter, remove_voter, update_voter)
