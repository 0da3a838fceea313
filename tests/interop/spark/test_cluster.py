"""A standalone cluster, whose workers know of Barnabas only what spark-submit sends them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support.spark import ROOT, SETTINGS

#: Where each of the executors has the packages from.
WHERE = """
import json
from pyspark.sql import SparkSession

def imported(batches):
    import os
    import pyarrow as pa
    import barnabas.client
    import pyspark_barnabas
    for batch in batches:
        place = [os.getcwd(), barnabas.client.__file__, pyspark_barnabas.__file__]
        yield pa.RecordBatch.from_pydict({"place": [json.dumps(place)]})

session = SparkSession.builder.getOrCreate()
rows = session.range(0, 40, 1, 8).mapInArrow(imported, "place string").collect()
print(json.dumps(sorted({row.place for row in rows})))
session.stop()
"""


def submit(master: str, application: Path, *arguments: str) -> str:
    """Run an application and give what it printed."""
    settings = {**SETTINGS, "spark.executor.memory": "512m", "spark.cores.max": "2"}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    command = [sys.executable, "-c", "from barnabas.cli.main import main; main()", "spark-submit"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable}
    ended = subprocess.run(
        [*command, "--master", master, *options, str(application), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-8000:]
    return ended.stdout


def test_workers_import_the_packages_that_were_sent_to_them(cluster: str, tmp_path: Path) -> None:
    application = tmp_path / "where.py"
    application.write_text(WHERE)
    places = [json.loads(place) for place in json.loads(submit(cluster, application))]
    assert len({directory for directory, *_ in places}) == 2
    for _, *files in places:
        assert all(".zip/" in file for file in files)
