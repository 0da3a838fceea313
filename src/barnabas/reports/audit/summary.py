"""Summary of the audit: who changes what, which ACLs are used, which changes are denied, how settings drift.

The topic is read twice, event by event: for the ACLs that existed, and then for everything else. In memory is only
the result, at most one row for each setting, ACL, kind of error and day.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.arrow import TopicBatches
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.client.admin.acls import AclUse
from barnabas.reading.connection import ConnectionOptions, connected
from barnabas.reading.opening import connected_logs
from barnabas.reading.options import ReadOptions
from barnabas.reading.planning import plan_ranges
from barnabas.reading.text_options import batch_read_options
from barnabas.reports.audit.analysis import (
    AclChange,
    DriftCount,
    GrantUse,
    acl_text,
    advice,
    drift_of,
    grant_uses,
    grants_of,
)
from barnabas.reports.audit.events import AuditError, LoggedEvent, read_acl_events, read_events
from barnabas.reports.audit.tallies import Activity, ConfigChange, RefusedChange, Setting, Tables
from barnabas.reports.audit.uses import UNAUTHORIZED, UseCounts
from barnabas.reports.progress import Progress, no_progress
from barnabas.wire.acls import AclBinding
from barnabas.wire.errors import ErrorCode, KafkaError


class GrantRow(NamedTuple):
    """An ACL and its use; times in ms since the epoch, None for before the audit or never."""

    principal: str
    acl: str
    is_standing: bool
    made: int | None
    made_by: str | None
    removed: int | None
    removed_by: str | None
    uses_count: int
    last_used: int | None
    principal_seen: int | None
    status: str
    unused_since: int | None


@dataclass(frozen=True)
class Audited:
    """Result of a run; after a dry run it has only the offset ranges."""

    ranges: tuple[tuple[int, int, int], ...]  #: partition, first offset, end
    events_count: int = 0
    activity: tuple[Activity, ...] = ()
    configs: tuple[ConfigChange, ...] = ()
    refusals: tuple[RefusedChange, ...] = ()
    settings: tuple[Setting, ...] = ()
    drift: tuple[DriftCount, ...] = ()
    grants: tuple[GrantUse, ...] = ()
    knows_acls: bool = (
        False  #: whether brokers reported the existing ACLs; if not, they are derived from the audit
    )
    dry_run: bool = False

    @property
    def advice(self) -> list[str]:
        """Recommendations for an operator."""
        unauthorized: dict[str, int] = {}
        for refusal in self.refusals:
            if refusal.error.endswith(UNAUTHORIZED):
                unauthorized[refusal.principal] = (
                    unauthorized.get(refusal.principal, 0) + refusal.events_count
                )
        return advice(self.grants, unauthorized)

    def grant_rows(self) -> list[GrantRow]:
        """Return one row per ACL."""
        return [
            GrantRow(
                grant.binding.principal,
                acl_text(grant.binding),
                grant.is_standing,
                grant.made,
                grant.made_by,
                grant.removed,
                grant.removed_by,
                grant_use.uses_count,
                grant_use.last_used,
                grant_use.principal_seen,
                grant_use.status,
                grant_use.unused_since,
            )
            for grant_use in self.grants
            for grant in (grant_use.grant,)
        ]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return all tables as rows, by name."""
        named: dict[str, Sequence[Any]] = {
            "activity": self.activity,
            "configs": self.configs,
            "refusals": self.refusals,
            "settings": self.settings,
            "drift": self.drift,
            "grants": self.grant_rows(),
        }
        return {name: [row._asdict() for row in rows] for name, rows in named.items()}

    def save(self, directory: Path) -> None:
        """Write each table as Parquet."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, rows in self.tables().items():
            pq.write_table(pa.Table.from_pylist(rows, _SCHEMAS[name]), directory / f"{name}.parquet")

    def to_json(self) -> dict[str, Any]:
        """Return the whole result as JSON fields."""
        ranges = [dict(zip(("partition", "low", "high"), bounds, strict=True)) for bounds in self.ranges]
        summary = {"dry_run": self.dry_run, "ranges": ranges, "events_count": self.events_count}
        return {**summary, "knows_acls": self.knows_acls, **self.tables(), "advice": self.advice}


def _schema(names: Sequence[str], counts: str, bools: str = "") -> pa.Schema:
    """Return a schema: columns in `counts` are integers, those in `bools` booleans, all others strings."""
    types = dict.fromkeys(counts.split(), pa.int64()) | dict.fromkeys(bools.split(), pa.bool_())
    return pa.schema([(name, types.get(name, pa.string())) for name in names])


_SCHEMAS = {
    "activity": _schema(Activity._fields, "requests_count events_count"),
    "configs": _schema(ConfigChange._fields, "changes_count last_time"),
    "refusals": _schema(RefusedChange._fields, "events_count first_time last_time"),
    "settings": _schema(Setting._fields, "changes_count last_time", "is_back"),
    "drift": _schema(DriftCount._fields, "keys_count changed_count"),
    "grants": _schema(
        GrantRow._fields, "made removed uses_count last_used principal_seen unused_since", "is_standing"
    ),
}


def audit(
    options: Mapping[str, str],
    *,
    since_ms: int | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Audited:
    """Read and analyse the audit topic.

    :param options: Connection options of the Spark source; topics and offsets are set here.
    :param since_ms: Ignore events before this time, except for the creation of ACLs.
    :raises AuditError: There is no audit topic, or a record in it is not an event.
    :raises OptionError: An option is not valid.
    """
    parsed = batch_read_options({**options, "subscribe": AUDIT_TOPIC})
    records = _records(parsed)
    ranges = tuple((tp.partition, low, high) for tp, low, high in records.ranges)
    if dry_run:
        return Audited(ranges, dry_run=True)
    standing, acl_use = _standing(parsed.connection)
    with progress(2 * sum(offset_range.offsets_count for offset_range in records.ranges)) as advance:
        return replace(analysed(_Watched(records, advance), standing, acl_use, since_ms), ranges=ranges)


class _Watched:
    """Batches of records that report progress."""

    def __init__(self, batches: Iterable[pa.RecordBatch], advance: Callable[[int], None]) -> None:
        self._batches = batches
        self._advance = advance

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            yield batch
            self._advance(batch.num_rows)


def analysed(
    records: Iterable[pa.RecordBatch],
    standing: Sequence[AclBinding] | None,
    acl_use: AclUse | None = None,
    since_ms: int | None = None,
) -> Audited:
    """Analyse the events of the audit topic.

    :param records: The columns `offset` and `value` of the topic; iterated twice.
    :param standing: The existing ACLs; None if brokers do not report them.
    :param acl_use: Which of them have decided requests; None if brokers do not report it.
    """
    acl_events = sorted(read_acl_events(records), key=lambda event: event.sequence)
    grants = grants_of(map(_acl_change, acl_events), standing)
    tables, uses = Tables(), UseCounts(grants)
    for event in read_events(records):
        if since_ms is None or event.time >= since_ms:
            tables.add(event)
            uses.add(event)
    return Audited(
        (),
        tables.events_count,
        tables.activity(),
        tables.configs(),
        tables.refusals(),
        tables.settings(),
        tuple(drift_of(tables.key_days())),
        tuple(grant_uses(grants, uses.uses(), tables.seen, acl_use)),
        knows_acls=standing is not None,
    )


def _acl_change(event: LoggedEvent) -> AclChange:
    fields = json.loads(event.after or event.before or "")
    return AclChange(event.time, event.principal, AclBinding.from_codes(*fields), event.after is not None)


def _records(parsed: ReadOptions) -> TopicBatches:
    with closing(connected_logs(parsed)) as logs:
        try:
            topic_ids = logs.partitions(parsed.selection)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            topic_ids = {}
        if not topic_ids:
            message = (
                f"topic {AUDIT_TOPIC} does not exist: Barnabas brokers create it unless "
                "barnabas.audit.enable=false"
            )
            raise AuditError(message)
        ranges = plan_ranges(logs, sorted(topic_ids), parsed)
    return TopicBatches(("offset", "value"), tuple(ranges), topic_ids, parsed)


def _standing(connection: ConnectionOptions) -> tuple[list[AclBinding] | None, AclUse | None]:
    """Return the existing ACLs and their use; None if the brokers do not report them."""
    with closing(connected(connection)) as client:
        try:
            return client.admin.describe_acls(), client.admin.describe_acl_use()
        except KafkaError:  # there is no authorizer, or this principal may not describe ACLs
            return None, None
