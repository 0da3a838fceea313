"""Which offset is the latest of each key: what compaction goes by."""

from hashlib import blake2b

#: What a key costs: its bytes or digest, its offset, its share of a table that may be half empty; measured.
ENTRY_BYTES = 200

#: Keys from this length on are known by a digest of so many bytes, so that no key can be taken for another.
_DIGEST_BYTES = 32

NO_OFFSET = -1


class OffsetMap:
    """Takes so many keys; who has another one to put asks `is_full` first."""

    def __init__(self, keys_count_max: int) -> None:
        assert keys_count_max > 0, keys_count_max
        self.keys_count_max = keys_count_max
        #: Up to here every record is accounted for.
        self.latest_offset = NO_OFFSET
        self._offsets: dict[bytes, int] = {}

    @classmethod
    def of_size(cls, size_bytes: int, load_factor: float) -> "OffsetMap":
        """One that fills `size_bytes` of memory up to `load_factor`."""
        return cls(max(1, int(size_bytes / ENTRY_BYTES * load_factor)))

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no further key fits."""
        return len(self._offsets) >= self.keys_count_max

    def put(self, key: bytes, offset: int) -> None:
        """Note that the latest record of `key` is at `offset`, which is larger than all before."""
        assert offset > self.latest_offset, (offset, self.latest_offset)
        self._offsets[_short(key)] = self.latest_offset = offset

    def latest(self, key: bytes) -> int:
        """Where the latest record of `key` is; -1 for a key that was not put."""
        return self._offsets.get(_short(key), NO_OFFSET)

    def pass_over(self, offset: int) -> None:
        """Note that nothing else up to `offset` has a key."""
        self.latest_offset = max(self.latest_offset, offset)


def _short(key: bytes) -> bytes:
    if len(key) < _DIGEST_BYTES:
        return key
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
