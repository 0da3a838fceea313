import pytest

from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.schema import (
    NO_VERSIONS,
    VERSION_MAX,
    Message,
    Struct,
    Versions,
    array,
    boolean,
    has_more_elements,
    int8,
    int32,
    nested,
    string,
    versions,
)


class Inner(Struct):
    index: int = int32(default=-1)
    tags: list[str] = array("string", "2+", default=...)


class Outer(Message):
    API_KEY = 7
    VERSIONS = Versions(0, 3)
    FLEXIBLE = versions("2+")

    name: str | None = string(default="", nullable="1+")
    inner: Inner = nested(Inner, "1+", default=...)
    maybe: Inner | None = nested(Inner, "1+", default=None, nullable="1+")
    many: list[Inner] | None = array(Inner, default=..., nullable="0+")
    flag: bool = boolean("3+", default=True, tag=4)
    level: int = int8("1-2", default=5, tag=0, tagged="2+")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0+", (0, VERSION_MAX)),
        ("3+", (3, VERSION_MAX)),
        ("1-4", (1, 4)),
        ("2", (2, 2)),
        ("none", NO_VERSIONS),
    ],
)
def test_version_ranges_have_the_notation_of_kafkas_schemas(text: str, expected: Versions) -> None:
    assert versions(text) == expected


def test_a_range_contains_its_ends_and_only_versions() -> None:
    span = versions("2-4")
    assert [version in span for version in (1, 2, 3, 4, 5)] == [False, True, True, True, False]
    assert "3" not in span
    assert 0 not in NO_VERSIONS


def test_fields_keep_their_order_names_and_versions() -> None:
    assert [field.name for field in Outer.FIELDS] == ["name", "inner", "maybe", "many", "flag", "level"]
    by_name = {field.name: field for field in Outer.FIELDS}
    assert by_name["name"].nullable == versions("1+")
    assert by_name["inner"].struct is Inner
    assert by_name["inner"].versions == versions("1+")
    assert by_name["many"].is_array
    assert by_name["many"].kind == "struct"
    assert Inner.FIELDS[1].kind == "string"
    assert Inner.FIELDS[1].struct is None


def test_a_tag_applies_to_the_fields_versions_by_default() -> None:
    by_name = {field.name: field for field in Outer.FIELDS}
    assert (by_name["flag"].tag, by_name["flag"].tagged) == (4, versions("3+"))
    assert (by_name["level"].tag, by_name["level"].tagged) == (0, versions("2+"))
    assert (by_name["name"].tag, by_name["name"].tagged) == (None, NO_VERSIONS)


def test_a_message_without_arguments_has_the_defaults() -> None:
    made = Outer()
    assert (made.name, made.maybe, made.many, made.flag, made.level) == ("", None, [], True, 5)
    assert made.inner == Inner(index=-1, tags=[])


def test_mutable_defaults_are_not_shared() -> None:
    one, two = Outer(), Outer()
    assert one.many is not None
    one.many.append(Inner())
    one.inner.tags.append("x")
    assert two.many == []
    assert two.inner.tags == []


def test_null_is_distinct_from_a_missing_argument() -> None:
    made = Outer(many=None, inner=None)  # type: ignore[arg-type]
    assert made.many is None
    assert made.inner is None


def test_arguments_are_positional_or_named() -> None:
    assert Inner(3, ["a"]) == Inner(tags=["a"], index=3)
    with pytest.raises(TypeError):
        Inner(indexes=3)  # type: ignore[call-arg]


def test_structs_are_compared_by_their_fields_and_their_type() -> None:
    class Other(Struct):
        index: int = int32(default=-1)
        tags: list[str] = array("string", default=...)

    assert Inner(1, ["a"]) == Inner(1, ["a"])
    assert Inner(1, ["a"]) != Inner(1, ["b"])
    assert Inner(1) != Other(1)
    assert Inner(1) != 1


def test_a_struct_is_not_hashable_because_it_is_mutable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Inner())


def test_a_struct_rejects_undeclared_fields() -> None:
    with pytest.raises(AttributeError):
        Inner().indexes = 4  # type: ignore[attr-defined]


def test_a_struct_prints_its_fields() -> None:
    assert repr(Inner(1, ["a"])) == "Inner(index=1, tags=['a'])"


def test_a_message_has_its_key_and_versions() -> None:
    assert (7, Versions(0, 3), versions("2+")) == (Outer.API_KEY, Outer.VERSIONS, Outer.FLEXIBLE)
    assert (Message.API_KEY, Message.VERSIONS) == (-1, NO_VERSIONS)


def test_elements_are_counted_through_all_arrays_up_to_the_limit() -> None:
    def response(topics_count: int, partitions_count: int) -> ListOffsetsResponse:
        partitions = [ListOffsetsPartitionResponse(partition_index=0)] * partitions_count
        topics = [ListOffsetsTopicResponse(name="t", partitions=partitions)] * topics_count
        return ListOffsetsResponse(topics=topics)

    assert not has_more_elements(response(2, 4), 10)
    assert has_more_elements(response(2, 4), 9)
    assert has_more_elements(response(11, 0), 10)
    assert not has_more_elements(ListOffsetsResponse(), 0)
    assert not has_more_elements(MetadataRequest(topics=None), 0)
