import subprocess
import sys

#: Modules of the standard library that take milliseconds to import and are not needed at the start.
HEAVY = ("dataclasses", "difflib", "inspect", "json", "logging")


def test_loading_the_keys_imports_no_heavy_modules() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import barnabas.config.load, barnabas.config.describe\n"
        f"print(*[name for name in {HEAVY!r} if name in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
