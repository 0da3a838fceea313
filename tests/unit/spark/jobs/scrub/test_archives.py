import hashlib
from pathlib import Path

import pytest

from barnabas.objects.directory_store import DirectoryStore
from pyspark_barnabas.jobs.archive.manifest import ArchivedFile, ArchiveError
from pyspark_barnabas.jobs.scrub.archives import CHANGED, CUT, MISSING, check_file, scrub_archive

CONTENT = b"x" * 10_000


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (CONTENT, None),
        (CONTENT[1:], CUT),
        (CONTENT + b"x", CHANGED),
        (CONTENT[1:] + b"y", CHANGED),
        (None, MISSING),
    ],
)
def test_a_file_is_compared_with_its_manifest(
    tmp_path: Path, content: bytes | None, kind: str | None
) -> None:
    store = DirectoryStore(tmp_path)
    file = ArchivedFile("a/b", "orders", "2026-01-01", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), 1)
    if content is not None:
        store.write("a/b", [content])
    finding = check_file(store, file)
    assert (finding and finding[:4]) == (kind and (kind, "orders", "2026-01-01", "a/b"))


def test_a_directory_without_runs_is_not_an_archive(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is not an archive: it has no runs"):
        scrub_archive(None, tmp_path, dry_run=True)
