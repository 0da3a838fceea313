"""Config changes from a form."""

from barnabas.client.admin.model import ConfigEntry, ConfigSynonym
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_source import ConfigSource
from barnabas.console.config_preview import ConfigPreview, changes_of, is_stale
from barnabas.console.forms import Form

OWN, DEFAULT = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DEFAULT_CONFIG


def entry(name: str, value: str, source: ConfigSource = DEFAULT, *synonyms: ConfigSynonym) -> ConfigEntry:
    own = ConfigSynonym(name, value, source)
    return ConfigEntry(name, value, source, read_only=False, sensitive=False, synonyms=(own, *synonyms))


ENTRIES = [
    entry("retention.ms", "10", OWN),
    entry("cleanup.policy", "compact", OWN, ConfigSynonym("log.cleanup.policy", "delete", DEFAULT)),
    entry("segment.ms", "5"),
]


def form(**fields: str) -> Form:
    named = {name.replace("__", ":").replace("_", "."): [value] for name, value in fields.items()}
    keys = [name.partition(":")[2] for name in named]
    return Form({**named, "key": keys})


def test_a_new_value_is_set() -> None:
    assert changes_of(form(value__segment_ms=" 7 "), ENTRIES) == [
        ConfigPreview(AlterConfigOp("segment.ms", OpType.SET, "7"), "5", "7")
    ]


def test_an_unchanged_value_is_not_a_change() -> None:
    assert changes_of(form(value__segment_ms="5"), ENTRIES) == []


def test_an_override_is_deleted_in_favour_of_the_inherited_value() -> None:
    [change] = changes_of(form(reset__cleanup_policy="1"), ENTRIES)
    assert change == ConfigPreview(
        AlterConfigOp("cleanup.policy", OpType.DELETE), "compact", "delete (log.cleanup.policy)"
    )
    [change] = changes_of(form(reset__retention_ms="1"), ENTRIES)
    assert change.after == "the broker's default"


def test_an_inherited_value_cannot_be_deleted() -> None:
    assert changes_of(form(reset__segment_ms="1"), ENTRIES) == []


def test_an_unknown_key_is_rejected() -> None:
    submitted = form(value__none="1")
    assert changes_of(submitted, ENTRIES) == []
    assert "no config 'none'" in submitted.errors[""]


def test_a_change_is_stale_if_the_value_has_changed() -> None:
    change = ConfigPreview(AlterConfigOp("segment.ms", OpType.SET, "7"), "5", "7")
    assert not is_stale(form(was__segment_ms="5"), [change])
    assert is_stale(form(was__segment_ms="6"), [change])
    assert is_stale(form(), [change])
