"""Completion candidates of arguments and options: names queried from the cluster, and static values."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import typer

from barnabas.cli.support import live
from barnabas.cli.support.login import COMMAND_CONFIG, command_config
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT

_KINDS = ("topic", "broker", "group", "user", "client-metrics")


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_prefix(incomplete, _query(ctx, live.topics))


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_prefix(incomplete, _query(ctx, live.groups))


def transactional_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_prefix(incomplete, _query(ctx, live.transactional_ids))


def users(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_prefix(incomplete, _query(ctx, live.users))


def brokers(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_prefix(incomplete, _query(ctx, live.brokers))


def log_dirs(ctx: typer.Context, incomplete: str) -> list[str]:
    return _with_prefix(incomplete, _query(ctx, live.log_dirs))


def features(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return candidates of the form `FEATURE=`."""
    return _with_prefix(incomplete, (f"{name}=" for name in _query(ctx, live.features)))


def partitions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return topic names, or after a colon the partitions of the topic (`TOPIC:0`)."""
    topic, colon, _ = incomplete.partition(":")
    if not colon:
        return topics(ctx, incomplete)
    count = next(iter(_query(ctx, lambda admin: live.partitions_count(admin, topic))), 0)
    return _with_prefix(incomplete, (f"{topic}:{index}" for index in range(int(count))))


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return candidates of the form `KIND/NAME`, as in audit events."""
    kind, slash, _ = incomplete.partition("/")
    if not slash:
        return _with_prefix(incomplete, (f"{kind}/" for kind in _KINDS))
    return _with_prefix(incomplete, (f"{kind}/{name}" for name in _resource_names(ctx, kind)))


def config_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of config resources of the kind given before."""
    kind = str(ctx.params.get("kind") or "")
    default = ["default"] if kind == "broker" else []
    return _with_prefix(incomplete, [*default, *_resource_names(ctx, "broker" if kind == "logger" else kind)])


def config_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the config keys of the resource given before."""
    return _with_prefix(incomplete, _keys(ctx))


def config_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return `KEY=` for the config keys of the resource given before."""
    return _with_prefix(incomplete, (f"{key}=" for key in _keys(ctx)))


def topic_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return `KEY=` for the config keys of topics."""
    return _with_prefix(incomplete, (f"{key}=" for key in _known_keys("topic")))


def quotas(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return `user=NAME`, `client-id=`, `ip=` and the quota keys."""
    if incomplete.startswith("user="):
        return _with_prefix(incomplete, (f"user={name}" for name in _query(ctx, live.users)))
    keys = (f"{key}=" for key in _known_keys("quota"))
    return _with_prefix(incomplete, ["user=", "client-id=", "ip=", *keys])


def _resource_names(ctx: typer.Context, kind: str) -> Iterable[str]:
    queries = {
        "topic": live.topics,
        "broker": live.brokers,
        "group": live.groups,
        "user": live.users,
        "client-metrics": live.client_metrics,
    }
    return _query(ctx, queries[kind]) if kind in queries else ()


def _keys(ctx: typer.Context) -> Iterable[str]:
    """Return the config keys that the broker reports for the resource, or else Kafka's keys for its kind."""
    kind, name = str(ctx.params.get("kind") or ""), str(ctx.params.get("name") or "")
    return list(_query(ctx, lambda admin: live.config_keys(admin, kind, name))) or _known_keys(kind)


def _known_keys(kind: str) -> Iterable[str]:
    """Return Kafka's config keys of a kind of resource. Imports their definitions, which only completion needs."""
    if kind == "quota":
        from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, CLIENT_QUOTA_KEYS

        return (*CLIENT_QUOTA_KEYS, *ADDRESS_QUOTA_KEYS)
    from barnabas.config.keys.broker import BROKER_KEYS
    from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
    from barnabas.config.keys.group import GROUP_KEYS
    from barnabas.config.keys.topic import TOPIC_KEYS

    known: Mapping[str, Iterable[str]] = {
        "topic": TOPIC_KEYS,
        "broker": BROKER_KEYS,
        "group": GROUP_KEYS,
        "client-metrics": CLIENT_METRICS_KEYS,
    }
    return known.get(kind, ())


def _query(ctx: typer.Context, query: live.Query[Iterable[str]]) -> Iterable[str]:
    """Query the cluster given on the command line; empty if it does not answer within the time limit."""
    file = ctx.params.get(COMMAND_CONFIG)
    with command_config(Path(file) if file else None):
        return live.call_with_timeout(ctx.params.get("bootstrap") or BOOTSTRAP_DEFAULT, query) or ()


def _with_prefix(incomplete: str, candidates: Iterable[str]) -> list[str]:
    return sorted({candidate for candidate in candidates if candidate.startswith(incomplete)})
