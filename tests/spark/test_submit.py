"""`barnabas spark-submit` runs applications."""

import os
import subprocess
import sys
from pathlib import Path

from support.spark import SETTINGS, worker_environment

APPLICATION = """
import sys
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
worker = session.range(1).mapInArrow(lambda batches: batches, "id long").count()
print(*sys.argv[1:], session.sparkContext.master, worker, session.conf.get("spark.sql.session.timeZone"))
session.stop()
raise SystemExit(3)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "spark-submit", *arguments]
    environment = {**os.environ, **worker_environment()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def test_an_application_runs_with_its_options_and_arguments_and_its_exit_code_is_returned(
    tmp_path: Path,
) -> None:
    application = tmp_path / "application.py"
    application.write_text(APPLICATION)
    settings = [part for key, value in SETTINGS.items() for part in ("--conf", f"{key}={value}")]
    ended = run("--master", "local[1]", *settings, str(application), "--help", "--ship", "x")
    assert ended.stdout == "--help --ship x local[1] 1 UTC\n", ended.stderr
    assert ended.returncode == 3


def test_sparks_own_options_are_printed_by_spark() -> None:
    ended = run("--", "--help")
    assert "--deploy-mode DEPLOY_MODE" in ended.stdout + ended.stderr
