"""A pseudo terminal that captures a program's output."""

import os
import pty
import re
import select
import termios
import time
from typing import Self, TextIO

WAIT_S = 150
_CHUNK_BYTES = 65_536
_COLUMNS_COUNT = 120

#: Escape sequences for colours and the cursor.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Programs write to `stream` or to its file descriptor; `text` is their output."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, _COLUMNS_COUNT))
        self.stream: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self._shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        os.close(self._master)

    @property
    def text(self) -> str:
        """Return the output without escape sequences."""
        return _CONTROL.sub("", self._shown.decode(errors="replace"))

    def read_until(self, pattern: str) -> None:
        """Read until the pattern appears."""
        end_s = time.monotonic() + WAIT_S
        while re.search(pattern, self.text) is None:
            assert self._read(end_s), f"{pattern} was not shown: {self.text[-4000:]}"

    def read_to_the_end(self) -> None:
        """Read until every writer has closed the terminal."""
        self.stream.close()
        end_s = time.monotonic() + WAIT_S
        while self._read(end_s):
            assert time.monotonic() < end_s, self.text[-4000:]

    def _read(self, end_s: float) -> bool:
        """Wait for more output; return whether any came in time."""
        poll = select.poll()  # `select` allows only small descriptors
        poll.register(self._master, select.POLLIN)
        if not poll.poll(max(0.0, end_s - time.monotonic()) * 1000):
            return False
        try:
            data = os.read(self._master, _CHUNK_BYTES)
        except OSError:  # Linux raises this when the last writer has closed the terminal
            return False
        self._shown += data
        return bool(data)
