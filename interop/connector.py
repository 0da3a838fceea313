"""Spark's own Kafka connector: fetched by Maven, and what a session needs to have it."""

from pathlib import Path

from interop import maven

HERE = Path(__file__).resolve().parent
POM = HERE / "spark" / "pom.xml"
JARS = HERE / ".cache" / "spark-connector"


def fetch() -> Path:
    """Bring the connector's jars into the cache; gives their directory."""
    return maven.jars(POM, JARS)


def settings() -> dict[str, str]:
    """What gives a session the format "kafka"."""
    return {"spark.jars": ",".join(str(jar) for jar in sorted(fetch().glob("*.jar")))}
