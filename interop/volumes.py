"""Small volumes that can be filled: tmpfs, which root may mount."""

import errno
import os
import subprocess
from pathlib import Path

FILLER = "filler"


def _as_root(*command: str | Path) -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    subprocess.run([*sudo, *command], check=True)


class Volume:
    """A tmpfs, mounted on a directory until it is closed."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        path.mkdir(parents=True)
        self._path = path
        _as_root("mount", "-t", "tmpfs", "-o", f"size={size_bytes},uid={os.getuid()}", "tmpfs", path)

    def fill(self) -> None:
        """Use all of its space."""
        with (self._path / FILLER).open("ab") as filler:
            chunk_bytes = 1 << 20
            while chunk_bytes:
                try:
                    os.posix_fallocate(filler.fileno(), filler.seek(0, os.SEEK_END), chunk_bytes)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    chunk_bytes //= 2

    def free(self) -> None:
        (self._path / FILLER).unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it; all data is gone."""
        _as_root("umount", "--lazy", self._path)
