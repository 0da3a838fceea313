"""A pseudo terminal: what a program shows to somebody who sits before it."""

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

#: Colours, and where the cursor goes.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Programs write to `stream`, or to its file descriptor; what they have shown is `text`."""

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
        """Without colours and moves of the cursor."""
        return _CONTROL.sub("", self._shown.decode(errors="replace"))

    def read_until(self, pattern: str) -> None:
        """Read until this has been shown."""
        end_s = time.monotonic() + WAIT_S
        while re.search(pattern, self.text) is None:
            assert self._read(end_s), f"{pattern} was not shown: {self.text[-4000:]}"

    def read_to_the_end(self) -> None:
        """Read until nobody is left who could write."""
        self.stream.close()
        end_s = time.monotonic() + WAIT_S
        while self._read(end_s):
            assert time.monotonic() < end_s, self.text[-4000:]

    def _read(self, end_s: float) -> bool:
        """Wait for more; whether there was any in time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, end_s - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, _CHUNK_BYTES)
        except OSError:  # Linux says so when the last that could write has closed it
            return False
        self._shown += data
        return bool(data)
