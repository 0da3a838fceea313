"""The replay of records, and what is decided on its result."""

from dataclasses import replace

import pytest

from barnabas.registry.deletion import decide_subject_deletion, decide_version_deletion
from barnabas.registry.errors import RegistryError
from barnabas.registry.levels import CompatibilityLevel, RegistryMode
from barnabas.registry.records import (
    ClearedSubject,
    CompatibilitySetting,
    DeletedSubject,
    ModeSetting,
    RegisteredVersion,
    RegistryRecord,
    RemovedVersion,
    decode_record,
    encode_record,
)
from barnabas.registry.registration import RegistrationRequest, decide_registration, find_registered
from barnabas.registry.schemas import SchemaReference, SchemaText, SchemaType
from barnabas.registry.state import LATEST, RegistryState
from support.cpu import cpu_time_limit
from support.registries import avro_record

INT, LONG = SchemaText(SchemaType.AVRO, '"int"'), SchemaText(SchemaType.AVRO, '"long"')


def state_of(*records: RegistryRecord) -> RegistryState:
    state = RegistryState()
    for record in records:
        state.replay(record)
    return state


RECORDS: list[RegistryRecord] = [
    RegisteredVersion("s", 1, 1, INT),
    RegisteredVersion("ü", 2, 3, LONG, deleted=True, further={"ts": 1}),
    RegisteredVersion(
        "s",
        1,
        1,
        SchemaText(SchemaType.JSON, "{}", (SchemaReference("a", "b", 1),), '{"tags":{}}', '{"rules":[1]}'),
    ),
    RemovedVersion("s", 1),
    CompatibilitySetting("", CompatibilityLevel.FULL),
    CompatibilitySetting("s", CompatibilityLevel.NONE, True),
    CompatibilitySetting("s", None),
    ModeSetting("s", RegistryMode.READONLY),
    ModeSetting("", None),
    DeletedSubject("s", 3),
    ClearedSubject("s"),
]


@pytest.mark.parametrize("record", RECORDS)
def test_records_are_decoded_as_they_were_encoded(record: RegistryRecord) -> None:
    assert decode_record(*encode_record(record)) == record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"SOMETHING","magic":0}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":":.context:s","version":1,"magic":1}', b"{}"),
    ],
)
def test_records_without_a_meaning_here_are_left_out(key: bytes, value: bytes | None) -> None:
    assert decode_record(key, value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"[]", b""),
        (b"{", b""),
        (b"{}", b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":"x","schemaType":"XML"}'),
        (b'{"keytype":"SCHEMA","subject":7,"version":1}', b'{"id":1,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":Infinity}', b'{"id":1,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1e999,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":{}}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b"[" * 100_000),
    ],
)
def test_malformed_records_are_errors(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_record(key, value)


def test_the_record_of_a_deleted_subject_deletes_its_versions() -> None:
    state = state_of(
        RegisteredVersion("s", 1, 1, INT), RegisteredVersion("s", 2, 2, LONG), DeletedSubject("s", 2)
    )
    assert list(state.subjects()) == []
    assert [each.version for each in state.versions("s", deleted=True)] == [1, 2]
    assert state.version("s", LATEST) is None
    assert state.next_version("s") == 3
    assert [each.subject for each in state.by_id(2)] == ["s"]


def test_the_deletion_of_the_empty_subject_keeps_the_settings_of_all_others() -> None:
    settings = (CompatibilitySetting("", CompatibilityLevel.FULL), ModeSetting("", RegistryMode.READWRITE))
    state = state_of(RegisteredVersion("", 1, 1, INT), *settings)
    decision = decide_subject_deletion(state, "", permanent=False)
    assert decision.records == (DeletedSubject("", 1),)
    assert decide_version_deletion(state, "", 1, permanent=False).records == (
        RegisteredVersion("", 1, 1, INT, deleted=True),
    )


def test_the_record_of_a_cleared_subject_removes_everything() -> None:
    state = state_of(
        RegisteredVersion("s", 1, 1, INT), ModeSetting("s", RegistryMode.READONLY), ClearedSubject("s")
    )
    assert list(state.subjects(deleted=True)) == []
    assert state.mode("s") is RegistryMode.READWRITE
    assert state.id_of(INT) is None


def test_an_id_stays_with_its_first_schema() -> None:
    state = state_of(RegisteredVersion("s", 1, 1, INT))
    with pytest.raises(ValueError, match="belongs to another schema"):
        state.replay(RegisteredVersion("t", 1, 1, LONG))
    assert list(state.subjects()) == ["s"]


def test_a_version_may_be_written_again_with_another_id() -> None:
    state = state_of(RegisteredVersion("s", 1, 1, INT), RegisteredVersion("s", 1, 2, LONG))
    assert not state.by_id(1)
    assert state.id_of(LONG) == 2


def test_a_subject_without_a_setting_has_that_of_all() -> None:
    state = state_of(
        CompatibilitySetting("", CompatibilityLevel.FULL), CompatibilitySetting("s", CompatibilityLevel.NONE)
    )
    assert (state.level("s"), state.level("t")) == (CompatibilityLevel.NONE, CompatibilityLevel.FULL)
    state.replay(ModeSetting("s", RegistryMode.READWRITE))
    state.replay(ModeSetting("", RegistryMode.READONLY_OVERRIDE))
    assert state.mode("s") is RegistryMode.READONLY_OVERRIDE


@pytest.mark.parametrize(
    ("level", "accepted"),
    [
        (CompatibilityLevel.NONE, {"int", "long", "string"}),
        (CompatibilityLevel.BACKWARD, {"long"}),
        (CompatibilityLevel.BACKWARD_TRANSITIVE, {"long"}),
        (CompatibilityLevel.FORWARD, {"int", "long"}),
        (CompatibilityLevel.FORWARD_TRANSITIVE, {"int"}),
        (CompatibilityLevel.FULL, {"long"}),
        (CompatibilityLevel.FULL_TRANSITIVE, set()),
    ],
)
def test_levels_compare_in_their_directions(level: CompatibilityLevel, accepted: set[str]) -> None:
    """The versions are int and then long; new is a type, or one of them as an item of a union."""
    state = state_of(
        RegisteredVersion("s", 1, 1, INT),
        RegisteredVersion("s", 2, 2, LONG),
        CompatibilitySetting("s", level),
    )

    def is_accepted(kind: str) -> bool:
        new = SchemaText(SchemaType.AVRO, f'{{"type":"{kind}","new":true}}')
        try:
            return bool(decide_registration(state, RegistrationRequest("s", new)).records)
        except RegistryError:
            return False

    assert {kind for kind in ("int", "long", "string") if is_accepted(kind)} == accepted


def test_a_schema_of_another_type_is_incompatible() -> None:
    state = state_of(RegisteredVersion("s", 1, 1, INT))
    with pytest.raises(RegistryError, match="the type is JSON, that of version 1 is AVRO"):
        decide_registration(state, RegistrationRequest("s", SchemaText(SchemaType.JSON, "{}")))


OLD = SchemaText(
    SchemaType.AVRO,
    '{"type":"record","name":"R","fields":[{"name":"f","type":"int","default":"0"}]}',
)


def test_a_stored_schema_that_is_older_than_a_rule_is_found() -> None:
    state = state_of(RegisteredVersion("s", 1, 7, OLD))
    assert decide_registration(state, RegistrationRequest("s", OLD)) == (7, ())
    assert find_registered(state, RegistrationRequest("s", OLD), deleted=False).id == 7
    with pytest.raises(RegistryError, match="is not of its type"):
        decide_registration(state, RegistrationRequest("t", OLD))


def test_a_schema_that_defines_its_types_is_found_if_the_stored_one_refers_to_them() -> None:
    item = SchemaText(SchemaType.AVRO, avro_record("Item", "sku"))
    basket = (
        '{"type":"record","name":"Basket","fields":[{"name":"one","type":%s},{"name":"two","type":"Item"}]}'
    )
    reference = SchemaReference("Item", "item", 1)
    stored = SchemaText(SchemaType.AVRO, basket % '"Item"', (reference,))
    state = state_of(RegisteredVersion("item", 1, 1, item), RegisteredVersion("s", 1, 7, stored))
    inlined = RegistrationRequest("s", SchemaText(SchemaType.AVRO, basket % item.text))
    assert decide_registration(state, inlined) == (7, ())
    assert find_registered(state, inlined, deleted=False).id == 7
    other = SchemaText(SchemaType.AVRO, basket % avro_record("Item", "sku", "count?"))
    assert decide_registration(state, RegistrationRequest("s", other)).records


def test_a_look_up_of_an_invalid_schema_says_so_although_its_subject_is_unknown() -> None:
    request = RegistrationRequest("unknown", SchemaText(SchemaType.AVRO, "{"))
    with pytest.raises(RegistryError, match="Invalid schema"):
        find_registered(state_of(), request, deleted=False)


def test_a_schema_without_metadata_and_rules_inherits_those_of_the_last_version() -> None:
    kept = replace(INT, metadata='{"tags":{}}', rule_set='{"rules":[1]}')
    state = state_of(RegisteredVersion("s", 1, 7, kept))
    assert decide_registration(state, RegistrationRequest("s", INT)) == (7, ())
    assert find_registered(state, RegistrationRequest("s", INT), deleted=False).id == 7
    (new,) = decide_registration(state, RegistrationRequest("s", LONG)).records
    assert isinstance(new, RegisteredVersion)
    assert new.schema == replace(kept, text=LONG.text)
    other = replace(INT, metadata="{}")
    (new,) = decide_registration(state, RegistrationRequest("s", other)).records
    assert isinstance(new, RegisteredVersion)
    assert new.schema == replace(kept, metadata="{}")


def test_the_latest_version_is_never_a_deleted_one() -> None:
    state = state_of(RegisteredVersion("s", 1, 1, INT), RegisteredVersion("s", 2, 2, LONG, deleted=True))
    found = state.version("s", LATEST, deleted=True)
    assert found is not None
    assert found.version == 1


def test_referrers_are_those_that_are_left() -> None:
    references = (SchemaReference("a", "s", 1), SchemaReference("b", "s", 1), SchemaReference("c", "s", 2))
    array = SchemaText(SchemaType.AVRO, '{"type":"array","items":"a"}', references)
    state = state_of(
        RegisteredVersion("s", 1, 1, INT),
        RegisteredVersion("u", 1, 2, array),
        RegisteredVersion("t", 1, 2, array, deleted=True),
    )
    assert [each.subject for each in state.referrers("s", 1)] == ["u"]
    assert [each.subject for each in state.referrers("s", 2, deleted=True)] == ["t", "u"]
    state.replay(DeletedSubject("u", 1))
    assert state.referrers("s", 1) == []
    state.replay(RemovedVersion("u", 1))
    state.replay(RegisteredVersion("t", 1, 3, LONG))
    assert state.referrers("s", 1, deleted=True) == state.referrers("s", 2, deleted=True) == []


@cpu_time_limit(5)
def test_many_subjects_with_one_schema_are_replayed() -> None:
    state = state_of(*(RegisteredVersion(f"s-{number}", 1, 1, INT) for number in range(20_000)))
    assert len(state.by_id(1)) == 20_000


@cpu_time_limit(5)
def test_a_subject_with_many_versions_is_deleted_among_many() -> None:
    others = (RegisteredVersion(f"s-{number}", 1, number, INT) for number in range(10_000, 40_000))
    versions = (
        RegisteredVersion(
            "many", number, number, SchemaText(SchemaType.AVRO, f'{{"type":"int","n":{number}}}')
        )
        for number in range(2, 1_000)
    )
    state = state_of(*others, *versions)
    assert len(decide_subject_deletion(state, "many", permanent=False).result) == 998
