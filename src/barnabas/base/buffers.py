"""The type of record data that is passed on without copies."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
