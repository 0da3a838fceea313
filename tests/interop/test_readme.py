"""The README's commands that need more than pip: kcat, and a fresh installation."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interop.brokers import Broker, first_broker, free_ports

from support.documents import ADDRESS, README, ROOT, block_with, inline_code

INSTALL_TIMEOUT_S = 180


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project's files like a fresh clone."""
    clone = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    return clone


@contextmanager
def serving(command: list[str], directory: Path, **environment: str) -> Iterator[None]:
    """Run a command that starts a broker, until the block ends."""
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": "", **environment},
    )
    assert process.stdout
    try:
        printed = []
        for line in process.stdout:
            printed.append(line)
            if line.startswith("Barnabas serves Kafka on "):
                break
        else:
            pytest.fail("".join(printed))
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(INSTALL_TIMEOUT_S)
        process.stdout.close()


def test_kcat_reads_what_it_produced(broker: Broker, tmp_path: Path) -> None:
    commands = block_with(README, "sh", "kcat").replace(ADDRESS, broker.bootstrap)
    done = subprocess.run(
        ["sh", "-eu", "-c", commands], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "hello\n", done.stderr


def test_make_run_serves_from_a_fresh_clone(checkout: Path) -> None:
    assert "make run " in block_with(README, "sh", "make test")
    [port] = free_ports(1)
    with serving(["make", "run", f"ARGS=--listen 127.0.0.1:{port}"], checkout):
        assert first_broker(f"127.0.0.1:{port}") is not None
        assert (checkout / "data").is_dir()


def test_pip_install_and_barnabas_serve_from_a_fresh_environment(checkout: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    [command] = [text for text in inline_code(README) if text.startswith("pip install . ")]
    [port] = free_ports(1)
    path = f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"
    command += f" --listen 127.0.0.1:{port} --data {tmp_path / 'data'}"
    with serving(["sh", "-eu", "-c", command], checkout, PATH=path):
        assert first_broker(f"127.0.0.1:{port}") is not None
