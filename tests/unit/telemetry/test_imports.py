import subprocess
import sys

MODULES = ("http", "logs", "metrics", "names", "process", "requests", "standard_logs", "tracing")
SLOW = ("prometheus_client", "opentelemetry", "rich")


def test_slow_libraries_are_imported_only_when_needed():
    lines = [f"import barnabas.telemetry.{module}" for module in MODULES]
    lines += [
        "from barnabas.telemetry.logs import configure, get_logger",
        "configure('json', 'info')",
        "get_logger('a').debug('left out')",
        "from barnabas.telemetry.tracing import Tracer",
        "Tracer.disabled().record('span', 0, None, topic='t')",
        "import sys",
        f"print([name for name in {SLOW} if name in sys.modules])",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
