"""Policies as users write them: modules in a directory on Python's path."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from textwrap import dedent

from barnabas.policy import AlterConfigPolicy, ConfigResource, ConfigResourceType, CreateTopicPolicy

_numbers = count()

#: A module whose classes all append to `calls`.
HEAD = """
from barnabas.policy import AlterConfigPolicy, CreateTopicPolicy, PolicyViolation

calls = []


class Logged(CreateTopicPolicy):
    def configure(self, configs):
        calls.append(("configure", configs))

    def validate(self, request):
        calls.append(("validate", request))

    def close(self):
        calls.append(("close",))

"""

NAMING = (
    HEAD
    + """
class Naming(Logged):
    def validate(self, request):
        super().validate(request)
        if not request.topic.startswith("team."):
            raise PolicyViolation(f"{request.topic} must begin with team.")
"""
)


class PolicyModule:
    """A policy module on disk."""

    def __init__(self, directory: Path) -> None:
        self.name = f"policy_of_a_test_{next(_numbers)}"
        self.path = directory / f"{self.name}.py"

    def write(self, text: str) -> None:
        self.path.write_text(dedent(text))

    def named(self, class_name: str) -> str:
        """Return the class's name as the broker's settings have it."""
        return f"{self.name}:{class_name}"

    @property
    def calls(self) -> list[tuple[object, ...]]:
        """Return the calls that the currently loaded module has logged."""
        found: list[tuple[object, ...]] = sys.modules[self.name].calls
        return found


@contextmanager
def policy_module(directory: Path, text: str) -> Iterator[PolicyModule]:
    """Write a module with this text that can be imported until the block ends."""
    module = PolicyModule(directory)
    module.write(text)
    sys.path.insert(0, str(directory))
    try:
        yield module
    finally:
        sys.path.remove(str(directory))
        sys.modules.pop(module.name, None)


def new_topic(
    name: str, partitions: int | None = 1, factor: int | None = 1, configs: Mapping[str, str] | None = None
) -> CreateTopicPolicy.RequestMetadata:
    """Build a topic as policies receive it."""
    return CreateTopicPolicy.RequestMetadata(name, partitions, factor, None, configs or {})


def altered_topic(name: str, **configs: str | None) -> AlterConfigPolicy.RequestMetadata:
    """Build a topic's altered configs as policies receive them; keys have underscores for dots."""
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    return AlterConfigPolicy.RequestMetadata(
        resource, {key.replace("_", "."): value for key, value in configs.items()}
    )
