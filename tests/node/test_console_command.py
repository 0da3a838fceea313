"""`barnabas console` in a process of its own."""

import re
import signal
import subprocess
import sys

import httpx
import pytest

from barnabas.testing import EmbeddedBroker
from support.process import START_TIMEOUT_S, clean_environment

COMMAND = [sys.executable, "-c", "from barnabas.cli.main import main; main()", "console"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_url_and_stops_on_sigterm(kafka: EmbeddedBroker, number: signal.Signals) -> None:
    command = [*COMMAND, "--bootstrap", kafka.bootstrap, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = re.search(rf"The console of {kafka.bootstrap}: (http://\S+)", process.stdout.readline())
        assert printed
        assert "Overview" in httpx.get(printed[1]).text
        process.send_signal(number)
        assert process.wait(START_TIMEOUT_S) == 0
