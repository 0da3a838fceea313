import subprocess
import sys

#: Modules of the standard library that cost milliseconds and that a start can do without.
HEAVY = ("dataclasses", "difflib", "inspect", "json", "logging")


def test_loading_the_keys_leaves_heavy_modules_alone() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import barnabas.config.load, barnabas.config.describe\n"
        f"print(*[name for name in {HEAVY!r} if name in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
