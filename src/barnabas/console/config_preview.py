"""Reads a form's config changes, and previews what they change."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.model import ConfigEntry
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_source import ConfigSource
from barnabas.console.forms import Form

#: Names of config sources on pages.
SOURCES: Mapping[ConfigSource, str] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "set for this topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "set for the broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "set for every broker",
    ConfigSource.STATIC_BROKER_CONFIG: "from the broker's file",
    ConfigSource.DEFAULT_CONFIG: "default",
}
OWN = ConfigSource.DYNAMIC_TOPIC_CONFIG


class ConfigPreview(NamedTuple):
    """A config change with the value before and after it, as displayed."""

    edit: AlterConfigOp
    before: str | None
    after: str | None


def changes_of(form: Form, entries: Iterable[ConfigEntry]) -> list[ConfigPreview]:
    """The config changes of a form: `value:KEY` is the new value, `reset:KEY` removes the own value.

    A value that is already effective, and a reset of an inherited value, are no changes.
    """
    known = {entry.name: entry for entry in entries}
    changes = []
    for key in form.all("key"):
        entry = known.get(key)
        if entry is None:
            form.refuse("", f"There is no config '{key}'.")
        elif form.flag(f"reset:{key}"):
            if entry.source is OWN:
                changes.append(
                    ConfigPreview(AlterConfigOp(key, OpType.DELETE), entry.value, inherited_value(entry))
                )
        elif form.text(f"value:{key}") != (entry.value or ""):
            value = form.text(f"value:{key}")
            changes.append(ConfigPreview(AlterConfigOp(key, OpType.SET, value), entry.value, value))
    return changes


def inherited_value(entry: ConfigEntry) -> str:
    """The inherited value after a reset, with its key, which may use other units.

    Kafka does not report the default of every key.
    """
    found = next((each for each in entry.synonyms if each.source is not entry.source), None)
    return "the broker's default" if found is None else f"{found.value} ({found.name})"


def is_stale(form: Form, changes: Sequence[ConfigPreview]) -> bool:
    """Whether values have changed since the preview (`was:KEY`)."""
    return any(form.raw(f"was:{change.edit.key}") != (change.before or "") for change in changes)
