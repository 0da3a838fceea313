"""A progress bar for long work, on stderr and only on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress(total_bytes: int) -> Iterator[Callable[[int], None]]:
    """Gives a function that takes note of bytes done; shows nothing for a pipe (0) or off a terminal."""
    if not total_bytes or not sys.stderr.isatty():
        yield lambda size_bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total_bytes)
        yield lambda size_bytes: bar.advance(task, size_bytes)
