"""Confluent's serializers for Java and their registry client, as a JSON-lines program."""

import zipfile
from pathlib import Path

from interop import maven
from interop.clients import Client, Kind

HERE = Path(__file__).resolve().parent / "registry"
POM = HERE / "pom.xml"
PROGRAM = HERE / "Serializers.java"
JARS = HERE.parent / ".cache" / "serializer-jars"

#: Of the connector's jars, those of the serializers and of what they need.
_NEEDED = (
    "avro-",
    "common-utils-",
    "commons-compress-",
    "guava-",
    "jackson-",
    "kafka-",
    "kotlin",
    "okio-",
    "protobuf-",
    "slf4j-api-",
    "swagger-",
    "wire-",
)


def fetch() -> Path:
    """Fetch the jars with Maven; return their directory."""
    jars = maven.jars(POM, JARS)
    for archive in jars.glob("*-plugin.zip"):
        with zipfile.ZipFile(archive) as files:
            for member in files.infolist():
                member.filename = Path(member.filename).name
                if member.filename.endswith(".jar") and member.filename.startswith(_NEEDED):
                    files.extract(member, jars)
        archive.unlink()
    return jars


def _command() -> list[str]:
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{fetch()}/*", str(PROGRAM)]


KIND = Kind("Java's serializers", _command, {})


def start(registry_url: str, log: Path) -> Client:
    """Start the program; its operations are described in `Serializers.java`."""
    return Client(KIND, registry_url, log)
