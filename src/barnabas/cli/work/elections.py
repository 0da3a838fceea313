"""What `barnabas elections` does."""

from collections.abc import Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import notice
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.places import expand_partitions, print_outcomes
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster_control import ElectionType
from barnabas.wire.errors import KafkaError


def elect(bootstrap: str, places: Sequence[PartitionArg], *, unclean: bool, as_json: bool) -> None:
    """Elect leaders for those partitions, or wherever one is needed, and print what became of each."""
    election = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED

    async def work(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        named = await expand_partitions(admin, [(place, None) for place in places])
        return await admin.elect_leaders(list(named) if places else None, election)

    outcomes = with_admin(bootstrap, work)
    print_outcomes(outcomes, "elected", {"ELECTION_NOT_NEEDED": "not needed"}, as_json=as_json)
    if not outcomes:
        notice("no partition needs an election")
