"""Search criteria for records: texts that the key, the value or a header contains, as displayed."""

import unicodedata
from typing import NamedTuple

from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.console.records import SEARCHED_BYTES_MAX, printable, searched, unformatted


class Criteria(NamedTuple):
    """Texts that a record must contain, all of them; empty ones are ignored.

    Case is ignored unless `match_case`. Runs of blanks count as one blank, and equivalent Unicode sequences
    as equal.
    """

    key: str = ""
    value: str = ""
    header: str = ""  #: `name`, `name=text`, or `=text` for a header of any name
    way: str = "auto"  #: the display format: one of records.WAYS
    match_case: bool = False

    def __bool__(self) -> bool:
        """Whether any criterion is set."""
        return bool(self.key or self.value or self.header)

    def matches(self, record: ConsumedRecord) -> bool:
        """Whether the record contains every text."""
        return (
            self._in(self.key, record.key, self.way)
            and self._in(self.value, record.value, self.way)
            and self._in_headers(record)
        )

    def cuts(self, record: ConsumedRecord) -> bool:
        """Whether only the beginning of a searched field is searched."""
        fields = [record.key if self.key else None, record.value if self.value else None]
        fields += [data for _, data in record.headers] if self.header else []
        return any(len(data or b"") > SEARCHED_BYTES_MAX for data in fields)

    def _in_headers(self, record: ConsumedRecord) -> bool:
        if not self.header:
            return True
        wanted, _, text = self.header.partition("=")
        name, way = self._folded(wanted), header_way(self.way)
        return any(
            (not wanted or self._folded(printable(each)) == name) and self._in(text, data, way)
            for each, data in record.headers
        )

    def _in(self, wanted: str, data: bytes | None, way: str) -> bool:
        if not wanted or not data:
            return not wanted
        may_match = self._may_match(wanted, unformatted(data, way))
        return may_match and self._folded(" ".join(wanted.split())) in self._folded(searched(data, way))

    def _may_match(self, wanted: str, plain: str | None) -> bool:
        """A cheap check whether a field can match; most records need not be formatted."""
        if plain is None or not unicodedata.is_normalized("NFC", plain):
            return True
        return self._folded("".join(wanted.split())) in self._folded(plain)

    def _folded(self, text: str) -> str:
        composed = text if text.isascii() else unicodedata.normalize("NFC", text)
        return composed if self.match_case else composed.casefold()


def header_way(way: str) -> str:
    """The display format of a header where fields have this format: JSON is for keys and values."""
    return "auto" if way == "json" else way
