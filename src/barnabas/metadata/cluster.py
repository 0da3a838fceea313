"""The id and the secret of the cluster, which never change."""

from dataclasses import dataclass, field, replace

from barnabas.base.ids import uuid_to_text
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_format import put_format
from barnabas.metadata.record_type import RecordType, Table

SECRET_BYTES = 32

#: The key of the only record.
KEY = "self"


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    cluster_id: str
    secret: bytes = field(
        repr=False
    )  #: never leaves the store; the salts of unknown users are derived from it


def _to_plain(cluster: ClusterRecord) -> dict[str, str]:
    return {"id": cluster.cluster_id, "secret": cluster.secret.hex()}


def _from_plain(plain: dict[str, str]) -> ClusterRecord:
    return ClusterRecord(plain["id"], bytes.fromhex(plain.get("secret", "")))


CLUSTER: RecordType[ClusterRecord] = RecordType("cluster", _to_plain, _from_plain)


def decide_form(
    table: Table[ClusterRecord], random_id: bytes, found_id: str | None, secret: bytes = b""
) -> Decision[str]:
    """Return the id of the cluster: that of the store, else that of a log directory, else a new one.

    The secret is stored together with the id.
    """
    cluster = table.get(KEY, ClusterRecord(found_id or uuid_to_text(random_id), b""))
    formed = cluster if cluster.secret else replace(cluster, secret=secret)
    if table.get(KEY) == formed:
        return Decision(formed.cluster_id)
    changes = (CLUSTER.put(KEY, formed), *(() if KEY in table else (put_format(),)))
    return Decision(formed.cluster_id, changes, {CLUSTER.key(KEY): table.revision(KEY)})
