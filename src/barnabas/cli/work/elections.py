"""Implementation of `barnabas elections`."""

from collections.abc import Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import notice
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.partitions import expand_partitions, print_results
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster_control import ElectionType
from barnabas.wire.errors import KafkaError


def elect(bootstrap: str, partitions: Sequence[PartitionArg], *, unclean: bool, as_json: bool) -> None:
    """Elect leaders of these partitions, or of all that need an election, and print the results."""
    election = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED

    async def work(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        tps = await expand_partitions(admin, [(partition, None) for partition in partitions])
        return await admin.elect_leaders(list(tps) if partitions else None, election)

    results = with_admin(bootstrap, work)
    print_results(results, "elected", {"ELECTION_NOT_NEEDED": "not needed"}, as_json=as_json)
    if not results:
        notice("no partition needs an election")
