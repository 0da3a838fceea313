"""The five codecs of record batches, in the framings of Kafka's clients."""

import mmap
import struct
from enum import IntEnum
from typing import TypeAlias

import cramjam

from barnabas.base import buffers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.walk import lz4_frame_end

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap

#: The limit of a decompressed batch: a few kilobytes of zeros must not fill the memory.
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024

#: Header of Java's SnappyOutputStream: magic, version 1, oldest compatible version 1.
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_MAGIC_BYTES = 8
_XERIAL_BLOCK_BYTES = 32 * 1024

#: LZ4 frame: magic, version 1 with independent blocks (Java clients refuse linked ones), blocks of at
#: most 64 KiB, and the checksum of those two descriptor bytes.
_LZ4_FRAME_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000
_LZ4_END = bytes(4)

#: cramjam's message for a full output.
_FULL = "failed to write whole buffer"


class UnpackedTooLarge(KafkaError):
    """The decompressed records do not fit."""


class Compression(IntEnum):
    """A codec, numbered as in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """Compress the records of a batch; `level` applies to gzip and zstd."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return bytes(cramjam.gzip.compress(data, level))
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            return _compress_lz4_frame(memoryview(data))
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level))


def decompress(codec: Compression, data: Buffer, size_max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Decompress the records of a batch.

    :raises KafkaError: CORRUPT_MESSAGE when `data` is malformed or decompresses to more than
        `size_max_bytes`.
    """
    if codec is Compression.NONE:
        return bytes(data)
    # An anonymous map costs only the pages that are written, so the size limit itself is free.
    output = mmap.mmap(-1, size_max_bytes)
    size_bytes = decompress_into(codec, data, output)
    return output[:size_bytes]


def decompress_into(codec: Compression, data: Buffer, output: Buffer) -> int:
    """Decompress the records of a batch into the beginning of `output`; return their size in bytes.

    :raises UnpackedTooLarge: When they do not fit.
    :raises KafkaError: CORRUPT_MESSAGE when `data` is malformed.
    """
    try:
        match codec:
            case Compression.NONE:
                return _copy_into(data, output)
            case Compression.GZIP:
                return cramjam.gzip.decompress_into(data, output)
            case Compression.SNAPPY:
                with memoryview(data) as packed, memoryview(output) as view:
                    return _decompress_snappy(packed, view)
            case Compression.LZ4:
                return cramjam.lz4.decompress_into(data, output)
            case Compression.ZSTD:
                return cramjam.zstd.decompress_into(data, output)
    except (cramjam.DecompressionError, struct.error) as error:
        if _FULL in str(error):
            raise _too_large(codec, len(output)) from error
        message = f"records compressed with {codec.name.lower()} cannot be unpacked: {error}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message) from error


def check_frame(codec: Compression, data: buffers.Buffer) -> None:
    """Refuse what `decompress_into` reads but Java clients do not: LZ4 other than one frame of independent blocks.

    :raises KafkaError: CORRUPT_MESSAGE.
    """
    if codec is not Compression.LZ4:
        return
    if data[:4] != _LZ4_FRAME_HEADER[:4] or lz4_frame_end(data) != len(data):
        message = "records compressed with lz4 are not exactly one frame of independent blocks"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def _too_large(codec: Compression, size_max_bytes: int) -> UnpackedTooLarge:
    message = (
        f"records compressed with {codec.name.lower()} unpack to more than the {size_max_bytes} bytes allowed"
    )
    return UnpackedTooLarge(ErrorCode.CORRUPT_MESSAGE, message)


def _copy_into(data: Buffer, output: Buffer) -> int:
    if len(data) > len(output):
        message = f"{len(data)} bytes of records, more than the {len(output)} allowed"
        raise UnpackedTooLarge(ErrorCode.CORRUPT_MESSAGE, message)
    with memoryview(output) as view:
        view[: len(data)] = data
    return len(data)


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _compress_lz4_frame(data: memoryview) -> bytes:
    parts = [_LZ4_FRAME_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (struct.pack("<I", len(block)), block)
        else:
            parts += (struct.pack("<I", len(plain) | _LZ4_STORED), bytes(plain))
    parts.append(_LZ4_END)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, output: memoryview) -> int:
    if data[:_XERIAL_MAGIC_BYTES] != _XERIAL_HEADER[:_XERIAL_MAGIC_BYTES]:
        return _decompress_snappy_block(data, output, 0)
    position, end = len(_XERIAL_HEADER), 0
    while position < len(data):
        (block_bytes,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 <= block_bytes <= len(data) - position:
            message = f"snappy block of {block_bytes} bytes where {len(data) - position} are left"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        end += _decompress_snappy_block(data[position : position + block_bytes], output, end)
        position += block_bytes
    return end


def _decompress_snappy_block(data: memoryview, output: memoryview, position: int) -> int:
    if cramjam.snappy.decompress_raw_len(data) > len(output) - position:
        raise _too_large(Compression.SNAPPY, len(output))
    return cramjam.snappy.decompress_raw_into(data, output[position:])
