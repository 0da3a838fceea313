"""What may stand at a place of a command line: names in a cluster that answers at once, and what is known anyway."""

from collections.abc import Iterable
from pathlib import Path

import typer

from barnabas.cli import live
from barnabas.cli.login import COMMAND_CONFIG, command_config

_KINDS = ("topic", "broker", "group", "user", "client-metrics")


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of topics."""
    return _beginning(incomplete, _found(ctx, live.topics))


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of groups."""
    return _beginning(incomplete, _found(ctx, live.groups))


def transactional_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Transactional ids."""
    return _beginning(incomplete, _found(ctx, live.transactional_ids))


def users(ctx: typer.Context, incomplete: str) -> list[str]:
    """Users that log in by SCRAM."""
    return _beginning(incomplete, _found(ctx, live.users))


def brokers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of brokers."""
    return _beginning(incomplete, _found(ctx, live.brokers))


def log_dirs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Paths of log directories."""
    return _beginning(incomplete, _found(ctx, live.log_dirs))


def features(ctx: typer.Context, incomplete: str) -> list[str]:
    """`FEATURE=`."""
    return _beginning(incomplete, (f"{name}=" for name in _found(ctx, live.features)))


def partitions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of topics, and behind a colon their partitions."""
    topic, colon, _ = incomplete.partition(":")
    if not colon:
        return topics(ctx, incomplete)
    count = next(iter(_found(ctx, lambda admin: live.partitions_count(admin, topic))), 0)
    return _beginning(incomplete, (f"{topic}:{index}" for index in range(int(count))))


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """`KIND/NAME`, as the audit names what is changed."""
    kind, slash, _ = incomplete.partition("/")
    if not slash:
        return _beginning(incomplete, (f"{each}/" for each in _KINDS))
    return _beginning(incomplete, (f"{kind}/{name}" for name in _named(ctx, kind)))


def config_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of what has configs, of the kind that stands before."""
    kind = str(ctx.params.get("kind") or "")
    default = ["default"] if kind == "broker" else []
    return _beginning(incomplete, [*default, *_named(ctx, "broker" if kind == "logger" else kind)])


def config_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of configs, of the resource that stands before."""
    return _beginning(incomplete, _keys(ctx))


def config_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """`KEY=`, of the resource that stands before."""
    return _beginning(incomplete, (f"{key}=" for key in _keys(ctx)))


def topic_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """`KEY=`, of topics."""
    return _beginning(incomplete, (f"{key}=" for key in _known_keys("topic")))


def quotas(ctx: typer.Context, incomplete: str) -> list[str]:
    """`user=NAME`, `client-id=` and `ip=`, and the keys of quotas."""
    if incomplete.startswith("user="):
        return _beginning(incomplete, (f"user={name}" for name in _found(ctx, live.users)))
    from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, CLIENT_QUOTA_KEYS

    keys = (f"{key}=" for key in (*CLIENT_QUOTA_KEYS, *ADDRESS_QUOTA_KEYS))
    return _beginning(incomplete, ["user=", "client-id=", "ip=", *keys])


def _named(ctx: typer.Context, kind: str) -> Iterable[str]:
    """The names of a kind of resources."""
    asks = {
        "topic": live.topics,
        "broker": live.brokers,
        "group": live.groups,
        "user": live.users,
        "client-metrics": live.client_metrics,
    }
    return _found(ctx, asks[kind]) if kind in asks else ()


def _keys(ctx: typer.Context) -> Iterable[str]:
    """The keys that the broker tells of the resource, else those that Kafka has for its kind."""
    kind, name = str(ctx.params.get("kind") or ""), str(ctx.params.get("name") or "")
    return list(_found(ctx, lambda admin: live.config_keys(admin, kind, name))) or _known_keys(kind)


def _known_keys(kind: str) -> Iterable[str]:
    if kind == "topic":
        from barnabas.config.keys.topic import TOPIC_KEYS

        return TOPIC_KEYS
    if kind == "broker":
        from barnabas.config.keys.broker import BROKER_KEYS

        return BROKER_KEYS
    if kind == "group":
        from barnabas.config.keys.group import GROUP_KEYS

        return GROUP_KEYS
    if kind == "client-metrics":
        from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS

        return CLIENT_METRICS_KEYS
    return ()


def _found(ctx: typer.Context, ask: live.Ask[Iterable[str]]) -> Iterable[str]:
    """What the cluster has that the command line names; nothing where it does not answer at once."""
    from barnabas.cli.options import BOOTSTRAP_DEFAULT

    file = ctx.params.get(COMMAND_CONFIG)
    with command_config(Path(file) if file else None):
        return live.call_with_timeout(ctx.params.get("bootstrap") or BOOTSTRAP_DEFAULT, ask) or ()


def _beginning(incomplete: str, candidates: Iterable[str]) -> list[str]:
    return sorted({each for each in candidates if each.startswith(incomplete)})
