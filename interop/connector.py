"""Spark's own Kafka connector, fetched by Maven, and the settings of a session with it."""

from pathlib import Path

from interop import maven

HERE = Path(__file__).resolve().parent
POM = HERE / "spark" / "pom.xml"
JARS = HERE / ".cache" / "spark-connector"


def fetch() -> Path:
    """Fetch the connector's jars into the cache; return their directory."""
    return maven.jars(POM, JARS)


def settings() -> dict[str, str]:
    """Return the settings of a session with the format "kafka"."""
    return {"spark.jars": ",".join(str(jar) for jar in sorted(fetch().glob("*.jar")))}
