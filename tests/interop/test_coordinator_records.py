"""Apache Kafka's own classes decode and encode the coordinators' records without change."""

import random
import subprocess
from pathlib import Path

from barnabas.wire.coordinator_records import serde
from barnabas.wire.coordinator_records.serde import GROUP_RECORDS, TRANSACTION_RECORDS
from interop import reference
from support.random_structs import random_struct

SOURCE = Path(reference.__file__).parent / "reference" / "coordinators" / "Records.java"
RECORDS_COUNT = 40  # of each type and version


def lines(rng: random.Random) -> list[str]:
    """Return every record type in every version, and tombstones."""
    written = []
    for name, topic in (("group", GROUP_RECORDS), ("transaction", TRANSACTION_RECORDS)):
        for key_kind, value_kind in topic.kinds:
            for version in (None, *range(value_kind.VERSIONS.last + 1)):
                for _ in range(RECORDS_COUNT):
                    value = None if version is None else random_struct(value_kind, version, rng)
                    key, encoded = serde.encode(random_struct(key_kind, 0, rng), value, version)
                    written.append(f"{name} {key.hex()} {'-' if encoded is None else encoded.hex()}")
    return written


def test_every_record_is_encoded_unchanged(tmp_path: Path) -> None:
    subprocess.run(["javac", "-cp", f"{reference.fetch()}/*", "-d", tmp_path, SOURCE], check=True)
    sent = lines(random.Random(848))
    command = reference.java(*reference.TOOL_JVM_OPTIONS, "Records", classes=tmp_path)
    done = subprocess.run(command, input="\n".join(sent), capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == sent
