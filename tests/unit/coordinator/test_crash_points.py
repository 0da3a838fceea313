"""The broker is killed at every append of an application's history: the application always completes."""

import random

import pytest

from barnabas.transactions.states import IDLE
from support.crash_applications import (
    INPUTS_COUNT,
    LONG_MS,
    RETRY_MS,
    Application,
    ConsumerApplication,
    IncarnationEnded,
    Troubles,
)
from support.crash_worlds import GROUP, CrashWorld, Disk, Killed

APPLICATIONS = [Application, ConsumerApplication]

#: The number of appends in a history, and some more for those that are repeated.
APPENDS_MAX = 80


def play(
    application: type[Application], level: int, disk: Disk, *, asks_again: bool = True, kills_count: int = 0
) -> CrashWorld:
    """Run an application from its first input to its last, in as many incarnations as it takes."""
    world, troubles = CrashWorld(disk, level), Troubles()
    end_ms = world.now_ms + application.RECOVERY_MS * (4 + kills_count)
    while True:
        try:
            application(world, level, troubles, asks_again=asks_again).run()
        except IncarnationEnded:
            assert world.now_ms < end_ms, "the next incarnation waits for too long"
        else:
            return world


def wait(world: CrashWorld, duration_ms: int) -> None:
    """Let time pass; the broker may still be killed."""
    end_ms = world.now_ms + duration_ms
    while world.now_ms < end_ms:
        try:
            world.wait(end_ms - world.now_ms)
        except Killed:
            world.start()


def check_completed(world: CrashWorld, outputs_count: int) -> None:
    """Check that no transaction is open, and that read_committed sees the first outputs, each once."""
    assert world.committed() == (list(range(outputs_count)), 0)
    assert world.groups.offsets.table.statistics()["pending_offsets_count"] == 0
    assert all(each.state in IDLE for each in world.transactions.transactions.values())


def check_end(world: CrashWorld) -> None:
    """Check that all inputs have their outputs, and that the abandoned group becomes empty."""
    wait(world, RETRY_MS)
    check_completed(world, INPUTS_COUNT)
    wait(world, LONG_MS)
    check_completed(world, INPUTS_COUNT)
    assert world.groups.groups[GROUP].is_empty


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("asks_again", [False, True])
def test_an_application_completes_wherever_the_broker_is_killed(
    application: type[Application], level: int, is_kept: bool, asks_again: bool
) -> None:
    appends_count = play(application, level, Disk()).disk.appends_count
    assert 50 < appends_count < APPENDS_MAX
    for kill in range(appends_count):
        disk = Disk([kill], is_kept=is_kept)
        check_end(play(application, level, disk, asks_again=asks_again, kills_count=1))


@pytest.mark.parametrize("seed", range(100))
def test_an_application_completes_however_often_the_broker_is_killed(seed: int) -> None:
    rng = random.Random(seed)
    kills = rng.sample(range(APPENDS_MAX), rng.randint(2, 12))
    disk = Disk(kills, is_kept=rng.random() < 0.5)
    application, level, asks_again = rng.choice(APPLICATIONS), rng.choice([0, 2]), rng.random() < 0.5
    check_end(play(application, level, disk, asks_again=asks_again, kills_count=len(kills)))


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("is_kept", [False, True])
def test_an_abandoned_transaction_and_group_expire(
    application: type[Application], level: int, is_kept: bool
) -> None:
    appends_count = play(application, level, Disk()).disk.appends_count
    for kill in range(appends_count):
        world, troubles = CrashWorld(Disk([kill], is_kept=is_kept), level), Troubles()
        while world.disk.appends_count <= kill:
            with pytest.raises(IncarnationEnded):
                application(world, level, troubles, asks_again=False).run()
        wait(world, LONG_MS)
        check_completed(world, world.read_count())
        assert all(group.is_empty for group in world.groups.groups.values())
