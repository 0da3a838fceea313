"""Generate docs/configs.md from the tables of configuration keys.

Run it after a change to the tables: `python tools/generate_config_docs.py`.
"""

from collections.abc import Iterable
from pathlib import Path

from barnabas.config.class_names import CLASS_KEYS
from barnabas.config.definition import ConfigKey, Synonym, UpdateMode
from barnabas.config.keys.barnabas import BARNABAS_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.coordinator import COORDINATOR_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.log import LOG_KEYS
from barnabas.config.keys.network import NETWORK_KEYS
from barnabas.config.keys.node import EMBEDDED_VALUES, NODE_KEYS
from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, BROKER_QUOTA_KEYS, CLIENT_QUOTA_KEYS, SCRAM_KEYS
from barnabas.config.keys.remote import REMOTE_KEYS
from barnabas.config.keys.replication import REPLICATION_KEYS
from barnabas.config.keys.security import SECURITY_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.keys.transaction import TRANSACTION_KEYS
from barnabas.config.load import environment_name
from barnabas.config.values import format_value

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "configs.md"

_BROKER_SECTIONS = (
    ("Barnabas's own", BARNABAS_KEYS),
    ("The node", NODE_KEYS),
    ("Network", NETWORK_KEYS),
    ("Logs", LOG_KEYS),
    ("Replication", REPLICATION_KEYS),
    ("Groups", COORDINATOR_KEYS),
    ("Transactions and quotas", TRANSACTION_KEYS),
    ("Tiered storage", REMOTE_KEYS),
    ("Security", SECURITY_KEYS),
)
_OTHER_SECTIONS = (
    ("Topics", "Set with CreateTopics, AlterConfigs and IncrementalAlterConfigs.", TOPIC_KEYS),
    ("Groups", "Set on the resource GROUP.", GROUP_KEYS),
    ("Client metrics", "Set on the resource CLIENT_METRICS.", CLIENT_METRICS_KEYS),
    ("Quotas of users and client ids", "Set with AlterClientQuotas.", CLIENT_QUOTA_KEYS),
    ("Credentials of users", "Set with AlterUserScramCredentials.", SCRAM_KEYS),
    ("Quotas of addresses", "Set with AlterClientQuotas.", ADDRESS_QUOTA_KEYS),
    ("Quotas of brokers", "Dynamic values of the resource BROKER only.", BROKER_QUOTA_KEYS),
)
_MODES = {
    UpdateMode.READ_ONLY: "at the start",
    UpdateMode.PER_BROKER: "per broker",
    UpdateMode.CLUSTER_WIDE: "any time",
}

_INTRODUCTION = f"""\
# Configuration keys

Written by `tools/generate_config_docs.py` from the tables in `src/barnabas/config/`: change those, not this.

Barnabas takes Apache Kafka's own names and values, with the types, defaults and bounds of Apache Kafka 4.3.
A value is looked for, the strongest first, in

1. what is set for the broker while it runs, then what is set for every broker (`barnabas configs set broker ...`),
2. `--set key=value` on the command line,
3. the environment: `{environment_name("log.retention.ms")}` is `log.retention.ms`, and
   `{environment_name("barnabas.metrics.listener")}` is `barnabas.metrics.listener`,
4. the file of `--config`, in the form of Java's .properties,
5. the defaults below.

A name that is no key is a warning; a value that a key does not allow ends the start with the key, the value
and what is valid. `listener.name.<listener>.<key>` sets a key for one listener, in the file or with `--set`.

*Effect* says whether a key does in Barnabas what it does in Kafka (*honoured*) or is only checked and shown
(*accepted without effect*). *Change* says when a broker key may be set: *at the start* only, *any time* for
one broker or for all, or *per broker* for one broker at a time; what is set so holds at once. Keys marked
*since 4.4* are newer than the Apache Kafka that Barnabas follows: they are accepted, and shown when set. So are
those marked *internal*.
"""


def render() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION, "## Brokers\n"]
    for title, keys in _BROKER_SECTIONS:
        parts.append(f"### {title}\n\n{_table(keys, with_mode=True)}")
    for title, text, table in _OTHER_SECTIONS:
        parts.append(f"## {title}\n\n{text}\n\n{_table(table.values(), with_mode=False)}")
    parts.append(_classes())
    return "\n".join(parts)


def _table(keys: Iterable[ConfigKey], *, with_mode: bool) -> str:
    heads = ["Key", "Type", "Default", "Valid", *(["Change"] if with_mode else []), "Effect", "Meaning"]
    rows = [heads, ["---"] * len(heads), *(_row(key, with_mode=with_mode) for key in keys)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(key: ConfigKey, *, with_mode: bool) -> list[str]:
    marks = [f"since {key.since}"] * (key.since in ("4.2", "4.3", "4.4")) + ["internal"] * key.internal
    return [
        f"`{key.name}`" + (f" ({', '.join(marks)})" if marks else ""),
        key.type.name.lower(),
        _default(key),
        "" if key.validator is None else key.validator.describe(),
        *([_MODES[key.mode]] if with_mode else []),
        key.effect.value,
        _meaning(key).replace("|", "\\|"),
    ]


def _default(key: ConfigKey) -> str:
    value = EMBEDDED_VALUES.get(key.name, format_value(key.default))
    if value is None:
        return "none"
    return f"`{value}`" if value else "empty"


def _meaning(key: ConfigKey) -> str:
    if not key.synonyms:
        return key.documentation
    return f"{key.documentation} Default from {', else '.join(map(_synonym, key.synonyms))}."


def _synonym(synonym: Synonym) -> str:
    return f"`{synonym.name}`" + (f" x {synonym.factor}" if synonym.factor != 1 else "")


def _classes() -> str:
    rows = [["Key", "Class", "In Barnabas"], ["---"] * 3]
    for key, known in CLASS_KEYS.items():
        rows += [[f"`{key}`", f"`{name}`", part] for name, part in known.built_in.items()]
        if known.python_ok:
            rows.append([f"`{key}`", "`package.module:Class`", "your own Python class"])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"## Classes\n\nJava classes cannot be loaded; these names stand for what is built in.\n\n{table}"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
