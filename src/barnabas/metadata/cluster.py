"""The cluster itself: its id, given once."""

from dataclasses import dataclass

from barnabas.base.ids import uuid_to_text
from barnabas.metadata.decision import Decision
from barnabas.metadata.noun import Noun, Table

#: There is one cluster to a store.
KEY = "self"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is true of the cluster as a whole."""

    cluster_id: str


CLUSTER: Noun[Cluster] = Noun(
    "cluster", lambda value: {"id": value.cluster_id}, lambda plain: Cluster(plain["id"])
)


def decide_form(table: Table[Cluster], random_id: bytes, found_id: str | None) -> Decision[str]:
    """The cluster's id: as it stands, else the one that a log directory names, else a fresh one."""
    if KEY in table:
        return Decision(table[KEY].cluster_id)
    cluster_id = found_id or uuid_to_text(random_id)
    return Decision(cluster_id, (CLUSTER.put(KEY, Cluster(cluster_id)),), {CLUSTER.key(KEY): 0})
