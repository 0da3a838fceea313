import pytest

from barnabas.base.arguments import secret_positions


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (b"--add-scram\0admin=admin\0", b"--add-scram\0admin=*****\0"),
        (b"--data\0/abc\0--add-scram\0a=abc\0", b"--data\0/abc\0--add-scram\0a=***\0"),
        (b"a=abcdef\0b=abc\0c=abc\0", b"a=******\0b=***\0c=***\0"),
        (b"--set\0key= abc\0", b"--set\0key= ***\0"),
        (b"add\0alice\0--password\0abc\0", b"add\0alice\0--password\0***\0"),
        (b"add\0abcd\0--password=abc\0", b"add\0abcd\0--password=***\0"),
    ],
)
def test_passwords_are_found_among_the_arguments(arguments: bytes, shown: bytes) -> None:
    concealed = bytearray(arguments)
    for position, size_bytes in secret_positions(arguments, ["admin", "abc", "abcdef", ""]):
        concealed[position : position + size_bytes] = b"*" * size_bytes
    assert concealed == shown
