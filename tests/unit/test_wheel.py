"""The wheel has every file of the packages, and nothing else. `make release` builds it twice and compares the bytes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
MADE = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "*.c")


def test_the_wheel_has_the_files_of_the_packages_and_no_others(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=MADE)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    source = tmp_path / "src"
    files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    without_compiler = {**os.environ, "CC": "false"}  # quick, and must work
    command = [sys.executable, "-c", BUILD]
    output = subprocess.check_output(
        command, cwd=tmp_path, env=without_compiler, stderr=subprocess.STDOUT, text=True
    )
    with ZipFile(tmp_path / output.splitlines()[-1]) as wheel:
        names = wheel.namelist()
    assert {name for name in names if ".dist-info/" not in name} == files
    assert {Path(name).suffix for name in files} >= {".py", ".pxd", ".typed", ".html", ".css", ".js", ".svg"}
    assert [name for name in names if name.endswith((".dist-info/entry_points.txt", "/licenses/LICENSE"))]
