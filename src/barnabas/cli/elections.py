"""`barnabas elections`: elect partition leaders."""

from typing import Annotated

import typer

from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice
from barnabas.cli.support.partitions import expand_partitions, parse_partition, print_results
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster_control import ElectionType
from barnabas.wire.errors import KafkaError


@command("elections", example="elections orders:0", apis=("ElectLeaders",), needs=("alter cluster",))
def elections(
    partition_args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[:PARTITION]...]",
            help="Partitions to elect leaders for (default: all that need an election).",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="For partitions without a leader, elect a replica that is not in sync: RECORDS MAY BE LOST.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    partitions = [parse_partition(text) for text in partition_args or []]
    election = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED

    async def elect(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        tps = await expand_partitions(admin, [(partition, None) for partition in partitions])
        return await admin.elect_leaders(list(tps) if partitions else None, election)

    results = with_admin(bootstrap, elect)
    print_results(results, "elected", {"ELECTION_NOT_NEEDED": "not needed"}, as_json=as_json)
    if not results:
        notice("no partition needs an election")
