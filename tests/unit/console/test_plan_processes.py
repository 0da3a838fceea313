"""Plan processes: limits and termination, with small Python programs in place of the worker."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.console import plan_processes
from barnabas.console.plan_processes import PROCESSES_MAX, PlanProcesses
from barnabas.console.plan_worker import PlanOrder
from barnabas.console.problems import PageError
from barnabas.console.settings import ConsoleSettings
from support.loop import on_loop
from support.waiting import reached

FOR_EVER = "import time; time.sleep(1000)"


def order(principal: str = "User:alice", text: str = "topics: {}") -> PlanOrder:
    return {
        "text": text,
        "bootstrap": "127.0.0.1:1",
        "principal": principal,
        "login": None,
        "tls": None,
        "connect_timeout_ms": 1000,
        "request_timeout_ms": 1000,
        "retry_timeout_ms": 0,
        "timeout_ms": 20_000,
        "cpu_s_max": 15,
    }


def running(code: str) -> PlanProcesses:
    return PlanProcesses([sys.executable, "-c", code])


async def started(processes: PlanProcesses, *principals: str) -> list[asyncio.Task[dict[str, object]]]:
    """Start plans."""
    tasks = [asyncio.create_task(processes.make(order(principal))) for principal in principals]
    await reached(lambda: processes.statistics()["running"] == len(tasks))
    return tasks


async def cancel(tasks: list[asyncio.Task[dict[str, object]]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@on_loop
async def test_a_cancelled_plan_kills_its_process() -> None:
    processes = running(FOR_EVER)
    tasks = await started(processes, "User:alice")
    [process] = processes._running.values()
    await cancel(tasks)
    await reached(lambda: process.poll() is not None)
    assert processes.statistics() == {"running": 0}


@on_loop
async def test_plans_beyond_the_limit_are_rejected() -> None:
    processes = running(FOR_EVER)
    tasks = await started(processes, *[f"User:{number}" for number in range(PROCESSES_MAX)])
    with pytest.raises(PageError, match="2 plans are in progress, which is the maximum"):
        await processes.make(order("User:other"))
    await cancel(tasks)


@on_loop
async def test_a_principal_runs_one_plan_at_a_time() -> None:
    processes = running(FOR_EVER)
    tasks = await started(processes, "User:alice")
    with pytest.raises(PageError, match="Another plan of User:alice is in progress"):
        await processes.make(order("User:alice"))
    await cancel(tasks)


@on_loop
async def test_a_process_killed_for_its_cpu_time_is_explained() -> None:
    burning = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"
    with pytest.raises(PageError, match="limit of 15 s of CPU time"):
        await running(burning).make(order())


@on_loop
async def test_a_process_that_fails_is_an_internal_error() -> None:
    with pytest.raises(RuntimeError, match="status 3"):
        await running("raise SystemExit(3)").make(order())


@on_loop
async def test_an_unreachable_cluster_has_the_same_error_as_on_other_pages() -> None:
    with pytest.raises(PageError) as raised:
        await PlanProcesses().make(order(text="topics: {t: {partitions: 2}}"))
    assert (raised.value.status, raised.value.title) == (502, "The cluster cannot be reached")


@on_loop
async def test_the_worker_rejects_aliases() -> None:
    outcome = await PlanProcesses().make(order(text="topics: &a {}\nquotas: *a"))
    assert outcome["refusal"].startswith("In line 1: &a is an anchor")


@on_loop
async def test_the_worker_does_not_import_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "barnabas.py").write_text("raise SystemExit('imported from here')")
    monkeypatch.chdir(tmp_path)
    assert "refusal" in await PlanProcesses().make(order(text="- a"))


def test_the_worker_limits_its_cpu_time_and_memory_and_lowers_its_priority() -> None:
    code = (
        "import json, os, resource\n"
        "from barnabas.console.plan_worker import limit_resources\n"
        "limit_resources(7)\n"
        "limits = [resource.getrlimit(each) for each in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]\n"
        "print(json.dumps([os.nice(0), limits]))\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip().endswith("[[7, 7], [1073741824, 1073741824]]]")
    assert int(printed[1:].partition(",")[0]) >= 10


def test_a_plan_has_a_lower_cpu_limit_than_a_page() -> None:
    assert ConsoleSettings("h:1").page_timeout_ms > plan_processes.CPU_S_MAX * 1000
