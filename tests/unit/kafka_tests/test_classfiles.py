"""Reading of compiled Java classes."""

import struct

import pytest
from interop.kafka_tests.classfiles import parse

LONG_TAG, UTF8_TAG, CLASS_TAG = 5, 1, 7


def class_file(name: str, parent: str, flags: int = 0x21, texts: tuple[str, ...] = ()) -> bytes:
    """Return the head of a class file: a long first, which takes two numbers, then names and strings."""
    pool = struct.pack(">Bq", LONG_TAG, 7)
    for text in (name, parent, *texts):
        pool += struct.pack(">BH", UTF8_TAG, len(text)) + text.encode()
    pool += struct.pack(">BHBH", CLASS_TAG, 3, CLASS_TAG, 4)
    count = 3 + 2 + len(texts) + 2
    this = 5 + len(texts)
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 61, count)
    return head + pool + struct.pack(">HHH", flags, this, this + 1)


def test_a_class_has_its_name_and_superclass() -> None:
    found = parse(class_file("kafka/server/FetchTest", "kafka/server/BaseTest"))
    assert (found.name, found.superclass) == ("kafka.server.FetchTest", "kafka.server.BaseTest")
    assert not found.abstract


def test_annotations_are_among_the_strings() -> None:
    assert "Lorg/junit/Test;" in parse(class_file("A", "B", texts=("Lorg/junit/Test;",))).texts


@pytest.mark.parametrize("flags", [0x0421, 0x0601])
def test_an_abstract_class_and_an_interface_are_abstract(flags: int) -> None:
    assert parse(class_file("A", "B", flags)).abstract


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04"])
def test_other_content_is_rejected(content: bytes) -> None:
    with pytest.raises(ValueError, match="begins with CAFEBABE"):
        parse(content)
