"""Audit job: who changes what, which ACLs are used, which changes are denied, how settings drift.

Spark groups and counts the events; the driver analyses the result, at most one row for each setting, ACL, kind of
error and day (`pyspark_barnabas.jobs.audit.analysis`).
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.client.admin.acls import AclUse
from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.reading.connection import ConnectionOptions, connected
from barnabas.reading.opening import open_logs
from barnabas.wire.acls import AclBinding, AclPermission
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.audit.analysis import (
    ACL_KEY,
    ACL_KIND,
    NEEDS,
    AclChange,
    DriftCount,
    Grant,
    GrantUse,
    KeyDay,
    Use,
    acl_text,
    advice,
    drift_of,
    grant_uses,
    grants_of,
)
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.source.options import SourceOptions, batch_options

#: An event as `barnabas.metadata.audit.events` writes it; values that are not strings are JSON here.
EVENT_DDL = (
    "revision BIGINT, number INT, time BIGINT, principal STRING, client_id STRING, client_host STRING, api STRING, "
    "outcome STRING, resource STRING, key STRING, before STRING, after STRING, error STRING, message STRING, "
    "policy STRING"
)
_CHANGED = "outcome = 'changed'"
#: Excludes keys that users do not set: replicas and leaders of partitions, registrations of brokers.
_SETTING = rf"{_CHANGED} AND key NOT RLIKE '^(partition [0-9]+ |fenced$|endpoints$|topic id$)'"
_CONFIGS = "api IN ('AlterConfigs', 'IncrementalAlterConfigs')"
_UNAUTHORIZED = "_AUTHORIZATION_FAILED"
_ORDER = "struct(revision, number)"


class AuditError(ValueError):
    """The audit topic does not exist or cannot be read."""


class Activity(NamedTuple):
    """Requests of one API by a principal for a kind of resource on a day (UTC)."""

    date: str
    principal: str
    api: str
    kind: str
    outcome: str
    requests_count: int
    events_count: int


class ConfigChange(NamedTuple):
    """Changes of a config by a principal, with the last values; times in ms since the epoch."""

    resource: str
    key: str
    principal: str
    changes_count: int
    last_time: int
    last_before: str | None
    last_after: str | None


class RefusedChange(NamedTuple):
    """A change that was denied (`refused`), or allowed with a warning (`warned`)."""

    principal: str
    api: str
    resource: str
    outcome: str
    error: str
    message: str
    events_count: int
    first_time: int
    last_time: int


class Setting(NamedTuple):
    """First and last value of a key that was changed; `is_back` if they are equal."""

    resource: str
    key: str
    at_first: str | None
    at_last: str | None
    changes_count: int
    principals: str
    last_time: int
    is_back: bool


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
    """Result of the job; after a dry run it has only the offset ranges."""

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
            if refusal.error.endswith(_UNAUTHORIZED):
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
    spark: SparkSession | None,
    options: Mapping[str, str],
    *,
    since_ms: int | None = None,
    dry_run: bool = False,
) -> Audited:
    """Read and analyse the audit topic. A dry run needs no session.

    :param options: Connection options of the source; the job sets topics and offsets itself.
    :param since_ms: Ignore events before this time, except for the creation of ACLs.
    :raises AuditError: There is no audit topic.
    :raises OptionError: An option is not valid.
    """
    source_options = {**options, "subscribe": AUDIT_TOPIC}
    parsed = batch_options(source_options)
    ranges = _ranges(parsed)
    if spark is None or dry_run:
        return Audited(ranges, dry_run=True)
    records = spark.read.format("barnabas").schema("value BINARY").options(**source_options).load()
    with progress(spark, "reading the audit"):
        return replace(analysed(records, *_standing(parsed.connection), since_ms), ranges=ranges)


def analysed(
    records: DataFrame,
    standing: Sequence[AclBinding] | None,
    acl_use: AclUse | None = None,
    since_ms: int | None = None,
) -> Audited:
    """Analyse the events of the audit topic.

    :param records: The topic's values, in the column `value`.
    :param standing: The existing ACLs; None if brokers do not report them.
    :param acl_use: Which of them have decided requests; None if brokers do not report it.
    """
    events = _events(records).cache()
    try:
        grants = grants_of(_acl_changes(events), standing)
        recent = events if since_ms is None else events.where(f.col("time") >= since_ms)
        return Audited(
            (),
            recent.count(),
            _activity(recent),
            _configs(recent),
            _refusals(recent),
            _settings(recent),
            tuple(drift_of(_key_days(recent))),
            tuple(grant_uses(grants, _uses(recent, grants), _seen(recent), acl_use)),
            knows_acls=standing is not None,
        )
    finally:
        events.unpersist()


def _ranges(parsed: SourceOptions) -> tuple[tuple[int, int, int], ...]:
    with closing(open_logs(parsed)) as logs:
        try:
            partitions = sorted(logs.partitions(parsed.selection))
        except KafkaError:
            partitions = []
        if not partitions:
            message = (
                f"topic {AUDIT_TOPIC} does not exist: Barnabas brokers create it unless "
                "barnabas.audit.enable=false"
            )
            raise AuditError(message)
        lows = logs.offsets(dict.fromkeys(partitions, EARLIEST))
        highs = logs.offsets(dict.fromkeys(partitions, LATEST))
    return tuple((tp.partition, lows[tp], highs[tp]) for tp in partitions)


def _events(records: DataFrame) -> DataFrame:
    event = f.from_json(f.col("value").cast("string"), EVENT_DDL, {"mode": "FAILFAST"})
    parsed = records.select(event.alias("e"))
    return parsed.select("e.*").withColumns(
        {
            "kind": f.expr(
                f"if(startswith(key, '{ACL_KEY}'), '{ACL_KIND}', substring_index(resource, '/', 1))"
            ),
            "date": f.expr("cast(date_add(date'1970-01-01', cast(floor(time / 86400000) as int)) as string)"),
        }
    )


def _standing(connection: ConnectionOptions) -> tuple[list[AclBinding] | None, AclUse | None]:
    """Return the existing ACLs and their use; None if the brokers do not report them."""
    with closing(connected(connection)) as client:
        try:
            return client.admin.describe_acls(), client.admin.describe_acl_use()
        except KafkaError:  # there is no authorizer, or this principal may not describe ACLs
            return None, None


def _acl_changes(events: DataFrame) -> list[AclChange]:
    acl_events = events.where(f"{_CHANGED} AND startswith(key, '{ACL_KEY}')").orderBy("revision", "number")
    changes = []
    for row in acl_events.select("time", "principal", "before", "after").collect():
        fields = json.loads(row.after or row.before)
        changes.append(
            AclChange(row.time, row.principal, AclBinding.from_codes(*fields), row.after is not None)
        )
    return changes


def _activity(events: DataFrame) -> tuple[Activity, ...]:
    keys = ("date", "principal", "api", "kind", "outcome")
    counted = events.groupBy(*keys).agg(f.count_distinct("revision"), f.count(f.lit(1)))
    return tuple(sorted(Activity(*row) for row in map(tuple, counted.collect())))


def _configs(events: DataFrame) -> tuple[ConfigChange, ...]:
    counted = (
        events.where(f"{_CHANGED} AND {_CONFIGS}")
        .groupBy("resource", "key", "principal")
        .agg(
            f.count(f.lit(1)),
            f.max("time"),
            f.expr(f"max_by(before, {_ORDER})"),
            f.expr(f"max_by(after, {_ORDER})"),
        )
    )
    changes = [ConfigChange(*row) for row in map(tuple, counted.collect())]
    return tuple(sorted(changes, key=lambda change: (-change.changes_count, change[:3])))


def _refusals(events: DataFrame) -> tuple[RefusedChange, ...]:
    keys = ("principal", "api", "resource", "outcome", "error", "message")
    counted = (
        events.where("outcome IN ('refused', 'warned')")
        .na.fill("", ["error", "message"])
        .groupBy(*keys)
        .agg(f.count(f.lit(1)), f.min("time"), f.max("time"))
    )
    refusals = [RefusedChange(*row) for row in map(tuple, counted.collect())]
    return tuple(sorted(refusals, key=lambda refusal: (-refusal.events_count, refusal)))


def _settings(events: DataFrame) -> tuple[Setting, ...]:
    counted = (
        events.where(_SETTING)
        .groupBy("resource", "key")
        .agg(
            f.expr(f"min_by(before, {_ORDER})").alias("at_first"),
            f.expr(f"max_by(after, {_ORDER})").alias("at_last"),
            f.count(f.lit(1)),
            f.array_join(f.array_sort(f.collect_set("principal")), ", "),
            f.max("time"),
        )
        .withColumn("is_back", f.expr("at_first <=> at_last"))
    )
    settings = [Setting(*row) for row in map(tuple, counted.collect())]
    return tuple(sorted(settings, key=lambda setting: (-setting.changes_count, setting[:2])))


def _key_days(events: DataFrame) -> list[KeyDay]:
    ends = (
        events.where(_SETTING)
        .groupBy("resource", "key", "date")
        .agg(f.expr(f"min_by(before, {_ORDER})"), f.expr(f"max_by(after, {_ORDER})"))
    )
    return [KeyDay(*row) for row in map(tuple, ends.collect())]


def _seen(events: DataFrame) -> dict[str, int]:
    return {row[0]: row[1] for row in events.groupBy("principal").agg(f.max("time")).collect()}


def _uses(events: DataFrame, grants: Sequence[Grant]) -> list[Use]:
    """Return which ACLs allowed the audited changes, and which denied those that failed with authorization errors.

    If several ACLs match a request, each counts, so that an operator sees whether one can be removed.
    """
    if not grants:
        return []
    spark = events.sparkSession
    needs = spark.createDataFrame(
        [(need.api, need.kind, need.operation.name, need.resource_type.name, need.is_own) for need in NEEDS],
        "api STRING, kind STRING, operation STRING, type STRING, is_own BOOLEAN",
    )
    acls = spark.createDataFrame(
        [_acl_row(number, grant) for number, grant in enumerate(grants)],
        "acl INT, acl_principal STRING, host STRING, held STRING, acl_type STRING, pattern STRING, name STRING, "
        "outcome STRING, "
        "made BIGINT, removed BIGINT",
    )
    requests = (
        events.where(f"{_CHANGED} OR endswith(error, '{_UNAUTHORIZED}')")
        .join(f.broadcast(needs), ["api", "kind"])
        .withColumn("own", f.expr("if(is_own, substring(resource, length(kind) + 2), 'kafka-cluster')"))
        .withColumn("acl_principal", f.explode(f.array("principal", f.lit("User:*"))))
    )
    matches = requests.join(f.broadcast(acls), ["acl_principal", "outcome"]).where(
        "type = acl_type AND held IN (operation, 'ALL') AND host IN ('*', client_host) "
        "AND if(pattern = 'PREFIXED', startswith(own, name), name IN ('*', own)) "
        "AND time >= coalesce(made, 0) AND (removed IS NULL OR time <= removed)"
    )
    counted = matches.groupBy("acl").agg(f.count_distinct("revision"), f.max("time"))
    return [Use(*row) for row in map(tuple, counted.collect())]


def _acl_row(number: int, grant: Grant) -> tuple[Any, ...]:
    binding = grant.binding
    outcome = "changed" if binding.permission is AclPermission.ALLOW else "refused"
    acl_fields = (
        binding.operation.name,
        binding.resource_type.name,
        binding.pattern_type.name,
        binding.resource_name,
    )
    return (number, binding.principal, binding.host, *acl_fields, outcome, grant.made, grant.removed)
