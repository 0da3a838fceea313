"""The type of record data that is passed along without being copied."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
