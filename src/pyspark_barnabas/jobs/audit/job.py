"""What the topic of the audit tells: who changes what, whose grants are used, what is refused, how settings drift.

Events are told apart and counted by Spark; what is left, at most a row for each setting, ACL, kind of refusal and day,
is judged here (`pyspark_barnabas.jobs.audit.analysis`).
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

from barnabas.client.admin.acls import AclUse
from barnabas.client.admin.offsets import EARLIEST, LATEST
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
    grants_of,
    judged,
)
from pyspark_barnabas.jobs.common.client import connected
from pyspark_barnabas.jobs.common.session import progress
from pyspark_barnabas.source.options import ConnectionOptions, SourceOptions, batch_options
from pyspark_barnabas.source.task_planner import open_logs

TOPIC = "__barnabas_audit"

#: An event as `barnabas.metadata.audit.events` writes it; values that are no text are JSON here.
EVENT_DDL = (
    "revision BIGINT, number INT, time BIGINT, principal STRING, client_id STRING, client_host STRING, api STRING, "
    "outcome STRING, resource STRING, key STRING, before STRING, after STRING, error STRING, message STRING, "
    "policy STRING"
)
_CHANGED = "outcome = 'changed'"
#: Keys that say where partitions lie and who leads, or that a broker is there: nobody sets them.
_SETTING = rf"{_CHANGED} AND key NOT RLIKE '^(partition [0-9]+ |fenced$|endpoints$|topic id$)'"
_CONFIGS = "api IN ('AlterConfigs', 'IncrementalAlterConfigs')"
_LACKING = "_AUTHORIZATION_FAILED"
_ORDER = "struct(revision, number)"


class AuditError(ValueError):
    """There is no audit that could be read."""


class Activity(NamedTuple):
    """What a principal did to a kind of resource on a day (UTC) by one kind of request."""

    date: str
    principal: str
    api: str
    kind: str
    outcome: str
    requests_count: int
    events_count: int


class ConfigChange(NamedTuple):
    """A config that a principal has set, and to what at last; times in ms since the epoch."""

    resource: str
    key: str
    principal: str
    changes_count: int
    last_time: int
    last_before: str | None
    last_after: str | None


class RefusedChange(NamedTuple):
    """What a principal wanted and did not get (`refused`), or got with a warning (`warned`)."""

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
    """A key that was changed, as it was and is: `is_back` where that is the same."""

    resource: str
    key: str
    at_first: str | None
    at_last: str | None
    changes_count: int
    principals: str
    last_time: int
    is_back: bool


class GrantRow(NamedTuple):
    """An ACL and what became of it; times in ms since the epoch, None for before the audit, and for never."""

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
    verdict: str
    unused_since: int | None


@dataclass(frozen=True)
class Audited:
    """What the audit tells; after a dry run only which offsets would be read."""

    ranges: tuple[tuple[int, int, int], ...]  #: partition, first offset, end
    events_count: int = 0
    activity: tuple[Activity, ...] = ()
    configs: tuple[ConfigChange, ...] = ()
    refusals: tuple[RefusedChange, ...] = ()
    settings: tuple[Setting, ...] = ()
    drift: tuple[DriftCount, ...] = ()
    grants: tuple[GrantUse, ...] = ()
    knows_acls: bool = False  #: whether brokers told which ACLs stand; else the audit alone does
    dry_run: bool = False

    @property
    def advice(self) -> list[str]:
        """What an operator might look at."""
        lacking: dict[str, int] = {}
        for each in self.refusals:
            if each.error.endswith(_LACKING):
                lacking[each.principal] = lacking.get(each.principal, 0) + each.events_count
        return advice(self.grants, lacking)

    def grant_rows(self) -> list[GrantRow]:
        """Each ACL as a row."""
        return [
            GrantRow(
                grant.binding.principal,
                acl_text(grant.binding),
                grant.is_standing,
                grant.made,
                grant.made_by,
                grant.removed,
                grant.removed_by,
                each.uses_count,
                each.last_used,
                each.principal_seen,
                each.verdict,
                each.unused_since,
            )
            for each in self.grants
            for grant in (each.grant,)
        ]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """All of it as rows, by name."""
        named: dict[str, Sequence[Any]] = {
            "activity": self.activity,
            "configs": self.configs,
            "refusals": self.refusals,
            "settings": self.settings,
            "drift": self.drift,
            "grants": self.grant_rows(),
        }
        return {name: [each._asdict() for each in its] for name, its in named.items()}

    def save(self, directory: Path) -> None:
        """Write each table as Parquet."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, rows in self.tables().items():
            pq.write_table(pa.Table.from_pylist(rows, _SCHEMAS[name]), directory / f"{name}.parquet")

    def to_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        ranges = [dict(zip(("partition", "low", "high"), each, strict=True)) for each in self.ranges]
        told = {"dry_run": self.dry_run, "ranges": ranges, "events_count": self.events_count}
        return {**told, "knows_acls": self.knows_acls, **self.tables(), "advice": self.advice}


def _schema(names: Sequence[str], counts: str, bools: str = "") -> pa.Schema:
    """Columns of these names: whole numbers and booleans are named, all others are texts."""
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
    """Read the audit, and count what it tells. A dry run needs no session.

    :param options: Of the source: how to reach the brokers. Topics and offsets are the job's own.
    :param since_ms: From when on events count; ACLs that were made before are known all the same.
    :raises AuditError: There is no audit.
    :raises OptionError: For an option that cannot be.
    """
    given = {**options, "subscribe": TOPIC}
    parsed = batch_options(given)
    ranges = _ranges(parsed)
    if spark is None or dry_run:
        return Audited(ranges, dry_run=True)
    records = spark.read.format("barnabas").schema("value BINARY").options(**given).load()
    with progress(spark, "reading the audit"):
        return replace(analysed(records, *_standing(parsed.connection), since_ms), ranges=ranges)


def analysed(
    records: DataFrame,
    standing: Sequence[AclBinding] | None,
    told: AclUse | None = None,
    since_ms: int | None = None,
) -> Audited:
    """Count what events tell.

    :param records: The topic's values, as `value`.
    :param standing: The ACLs that there are; None where nobody tells.
    :param told: Those of them that have decided something; None where nobody tells.
    """
    events = _events(records).cache()
    try:
        grants = grants_of(_acl_changes(events), standing)
        wanted = events if since_ms is None else events.where(f.col("time") >= since_ms)
        return Audited(
            (),
            wanted.count(),
            _activity(wanted),
            _configs(wanted),
            _refusals(wanted),
            _settings(wanted),
            tuple(drift_of(_key_days(wanted))),
            tuple(judged(grants, _uses(wanted, grants), _seen(wanted), told)),
            knows_acls=standing is not None,
        )
    finally:
        events.unpersist()


def _ranges(parsed: SourceOptions) -> tuple[tuple[int, int, int], ...]:
    with closing(open_logs(parsed)) as logs:
        try:
            places = sorted(logs.partitions(parsed.selection))
        except KafkaError:
            places = []
        if not places:
            message = (
                f"there is no topic {TOPIC}: brokers of Barnabas write it, unless barnabas.audit.enable=false"
            )
            raise AuditError(message)
        lows = logs.offsets(dict.fromkeys(places, EARLIEST))
        highs = logs.offsets(dict.fromkeys(places, LATEST))
    return tuple((place.partition, lows[place], highs[place]) for place in places)


def _events(records: DataFrame) -> DataFrame:
    event = f.from_json(f.col("value").cast("string"), EVENT_DDL, {"mode": "FAILFAST"})
    told = records.select(event.alias("e"))
    return told.select("e.*").withColumns(
        {
            "kind": f.expr(
                f"if(startswith(key, '{ACL_KEY}'), '{ACL_KIND}', substring_index(resource, '/', 1))"
            ),
            "date": f.expr("cast(date_add(date'1970-01-01', cast(floor(time / 86400000) as int)) as string)"),
        }
    )


def _standing(connection: ConnectionOptions) -> tuple[list[AclBinding] | None, AclUse | None]:
    """The ACLs that there are, and which of them have decided something; None where brokers do not tell."""
    with closing(connected(connection)) as client:
        try:
            return client.admin.describe_acls(), client.admin.describe_acl_use()
        except KafkaError:  # without an authorizer there are none to be told, or this principal may not know
            return None, None


def _acl_changes(events: DataFrame) -> list[AclChange]:
    told = events.where(f"{_CHANGED} AND startswith(key, '{ACL_KEY}')").orderBy("revision", "number")
    found = []
    for row in told.select("time", "principal", "before", "after").collect():
        fields = json.loads(row.after or row.before)
        found.append(
            AclChange(row.time, row.principal, AclBinding.from_codes(*fields), row.after is not None)
        )
    return found


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
    found = [ConfigChange(*row) for row in map(tuple, counted.collect())]
    return tuple(sorted(found, key=lambda each: (-each.changes_count, each[:3])))


def _refusals(events: DataFrame) -> tuple[RefusedChange, ...]:
    keys = ("principal", "api", "resource", "outcome", "error", "message")
    counted = (
        events.where("outcome IN ('refused', 'warned')")
        .na.fill("", ["error", "message"])
        .groupBy(*keys)
        .agg(f.count(f.lit(1)), f.min("time"), f.max("time"))
    )
    found = [RefusedChange(*row) for row in map(tuple, counted.collect())]
    return tuple(sorted(found, key=lambda each: (-each.events_count, each)))


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
    found = [Setting(*row) for row in map(tuple, counted.collect())]
    return tuple(sorted(found, key=lambda each: (-each.changes_count, each[:2])))


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
    """Which ACLs let the changes that the audit tells of, and which forbade what was refused for want of a right.

    Where several do each counts: whoever would take one away finds out so whether others do without it.
    """
    if not grants:
        return []
    spark = events.sparkSession
    needs = spark.createDataFrame(
        [(each.api, each.kind, each.operation.name, each.resource_type.name, each.is_own) for each in NEEDS],
        "api STRING, kind STRING, operation STRING, type STRING, is_own BOOLEAN",
    )
    acls = spark.createDataFrame(
        [_acl_row(number, each) for number, each in enumerate(grants)],
        "acl INT, who STRING, host STRING, held STRING, its_type STRING, pattern STRING, name STRING, outcome STRING, "
        "made BIGINT, removed BIGINT",
    )
    asked = (
        events.where(f"{_CHANGED} OR endswith(error, '{_LACKING}')")
        .join(f.broadcast(needs), ["api", "kind"])
        .withColumn("own", f.expr("if(is_own, substring(resource, length(kind) + 2), 'kafka-cluster')"))
        .withColumn("who", f.explode(f.array("principal", f.lit("User:*"))))
    )
    met = asked.join(f.broadcast(acls), ["who", "outcome"]).where(
        "type = its_type AND held IN (operation, 'ALL') AND host IN ('*', client_host) "
        "AND if(pattern = 'PREFIXED', startswith(own, name), name IN ('*', own)) "
        "AND time >= coalesce(made, 0) AND (removed IS NULL OR time <= removed)"
    )
    counted = met.groupBy("acl").agg(f.count_distinct("revision"), f.max("time"))
    return [Use(*row) for row in map(tuple, counted.collect())]


def _acl_row(number: int, grant: Grant) -> tuple[Any, ...]:
    binding = grant.binding
    outcome = "changed" if binding.permission is AclPermission.ALLOW else "refused"
    what = (
        binding.operation.name,
        binding.resource_type.name,
        binding.pattern_type.name,
        binding.resource_name,
    )
    return (number, binding.principal, binding.host, *what, outcome, grant.made, grant.removed)
