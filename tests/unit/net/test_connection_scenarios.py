"""Run tests/scenarios/connection in virtual time."""

import asyncio
from pathlib import Path

import pytest

from barnabas.net.connection_state import TRANSITIONS, ConnectionPhase, ConnectionState
from support.connections import Client
from support.loop import in_virtual_time, turns
from support.scenarios import files_of, replay, words_of


class Connection:
    """Commands on one connection; each returns the phase and the bytes received since the previous command."""

    def __init__(self) -> None:
        self._client = Client()
        self._received_count = 0

    async def run(self, command: str) -> list[str]:
        verb, words, _ = words_of(command)
        await getattr(self, verb)(words)
        return self._describe()

    async def connect(self, words: list[str]) -> None:
        """connect [DELAY_MS]: after the delay the connection is closed because of its rate"""
        self._client = Client(delay_ms=int(words[0]) if words else 0)
        self._received_count = 0
        await turns(1)

    async def send(self, words: list[str]) -> None:
        """send HOW:TEXT...: requests of one packet"""
        self._client.send(*words)
        await turns(1)

    async def release(self, words: list[str]) -> None:
        """release TEXT: completes the request's wait"""
        await self._client.release(words[0])

    async def wait(self, words: list[str]) -> None:
        """wait MS"""
        await asyncio.sleep(int(words[0]) / 1000)

    async def pause(self, words: list[str]) -> None:
        """pause: the client does not read"""
        self._client.connection.pause_writing()

    async def resume(self, words: list[str]) -> None:
        """resume: the client reads again"""
        self._client.connection.resume_writing()

    async def close(self, words: list[str]) -> None:
        """close: the broker closes the connection"""
        self._client.connection.close("a scenario")

    async def lose(self, words: list[str]) -> None:
        """lose: the client is gone"""
        self._client.connection.connection_lost(None)
        await turns(3)

    def _describe(self) -> list[str]:
        received = self._client.received
        new, self._received_count = received[self._received_count :], len(received)
        statistics = self._client.connection.statistics()
        notes = {
            f"{statistics['queued_count']} queued": statistics["queued_count"],
            "not read": not self._client.transport.reading,
            f"cancelled {' '.join(self._client.dispatcher.cancelled)}": self._client.dispatcher.cancelled,
            "aborted": self._client.transport.aborted,
        }
        state = ", ".join([str(statistics["phase"]), *(note for note, holds in notes.items() if holds)])
        return [f"{state}: {' '.join(new) or '-'}"]


@pytest.mark.parametrize("path", files_of("connection"), ids=lambda path: path.stem)
def test_a_scenario_has_the_recorded_output(path: Path) -> None:
    @in_virtual_time
    async def run() -> None:
        await replay(path, Connection().run)

    run()


def test_every_phase_has_transitions() -> None:
    assert set(TRANSITIONS) == set(ConnectionPhase)
    assert all(
        ConnectionPhase.CLOSED in to
        for phase, to in TRANSITIONS.items()
        if phase is not ConnectionPhase.CLOSED
    )


def test_a_transition_that_is_not_in_the_table_is_rejected() -> None:
    state = ConnectionState()
    state.change(ConnectionPhase.CLOSING)
    with pytest.raises(AssertionError):
        state.change(ConnectionPhase.OPEN)
