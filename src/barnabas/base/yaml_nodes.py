"""Reading YAML so that every error names the line, the key, the value and what would be right."""

import contextlib
import difflib
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import yaml

ResultT = TypeVar("ResultT")

_SHOWN_CHARACTERS_MAX = 60
_YAML = "tag:yaml.org,2002:"

_NO_TEXT = "contains an unpaired surrogate (\\ud800 to \\udfff)"

#: No state or rule has so many levels.
_DEPTH_MAX = 50

#: Of a text that is not trusted; a topic with three configs has about ten.
UNTRUSTED_NODES_MAX = 100_000


class YamlError(Exception):
    """A file that does not say what it should; `line`, from 1, where it is one line's fault."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


class YamlNode(NamedTuple):
    """A value in a file, and the keys that lead to it: `topics[0].partitions`."""

    node: yaml.Node
    path: str

    def fail(self, expected: str) -> NoReturn:
        """:raises YamlError: With line, key, value and what would be right."""
        what = f"{self.path} is {_shown(self.node)}" if self.path else f"the file is {_shown(self.node)}"
        raise YamlError(f"{what}: {expected}", self.line)

    @property
    def line(self) -> int:
        """The line it begins in, from 1."""
        return int(self.node.start_mark.line) + 1

    def mapping(self, known: Collection[str] | None = None) -> "dict[str, YamlNode]":
        """Its values by key, of which none may come twice or, with `known`, be another."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail("must be a mapping (key: value)")
        found: dict[str, YamlNode] = {}
        for key_node, value in self.node.value:
            key = key_node.value
            node = YamlNode(value, f"{self.path}.{key}" if self.path else str(key))
            if not isinstance(key, str):
                YamlNode(key_node, f"a key of {self.path or 'the file'}").fail("must be a text")
            if not _is_utf8(key):
                YamlNode(key_node, f"a key of {self.path or 'the file'}").fail(_NO_TEXT)
            if known is not None and key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"valid are {', '.join(sorted(known))}"
                YamlNode(key_node, f"a key of {self.path or 'the file'}").fail(f"is unknown; {hint}")
            if key in found:
                node.fail(f"comes twice, first in line {found[key].line}")
            found[key] = node
        return found

    def items(self) -> "list[YamlNode]":
        """Its items."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail("must be a list ([a, b], or a line for each beginning with -)")
        return [YamlNode(node, f"{self.path}[{index}]") for index, node in enumerate(self.node.value)]

    def text(self) -> str:
        """The text as it is written, of whatever type."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            self.fail("must be a text")
        text: str = self.node.value
        if not _is_utf8(text):
            self.fail(_NO_TEXT)
        return text

    @property
    def is_null(self) -> bool:
        """Whether nothing is written."""
        return bool(self.node.tag == f"{_YAML}null")

    def word(self, valid: Collection[str]) -> str:
        """One of the words."""
        text = self.text()
        if text not in valid:
            self.fail(f"must be {' or '.join(valid)}")
        return text

    def boolean(self) -> bool:
        """True or false."""
        if self.node.tag != f"{_YAML}bool":
            self.fail("must be true or false")
        return bool(self._constructed())

    def number(self, expected: str = "must be a number") -> float:
        """A number, whole ones as int."""
        if self.node.tag not in (f"{_YAML}int", f"{_YAML}float"):
            self.fail(expected)
        try:
            number = self._constructed()
        except ValueError:  # tagged as a number, but none
            self.fail(expected)
        if not isinstance(number, int | float) or number != number:
            self.fail(expected)
        return number

    def whole(self, least: int, most: int | None = None) -> int:
        """A whole number of at least `least`, and at most `most`."""
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        expected = f"must be a whole number {bounds}"
        number = self.number(expected)
        if not isinstance(number, int) or number < least or (most is not None and number > most):
            self.fail(expected)
        return number

    def pattern(self) -> re.Pattern[str]:
        """A regular expression."""
        try:
            return re.compile(self.text())
        except re.error as error:
            self.fail(f"must be a regular expression: {error}")

    def _constructed(self) -> object:
        value: object = yaml.constructor.SafeConstructor().construct_object(self.node)
        return value


def read_yaml(path: Path, read: Callable[[YamlNode], ResultT]) -> ResultT:
    """What `read` makes of a file.

    :raises YamlError: When the file cannot be read, is no YAML, is nested too deeply, or `read` objects.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise YamlError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise YamlError(f"must be in UTF-8: {error}") from None
    return read_yaml_text(text, read)


def _check_bounds(text: str, *, trusted: bool) -> None:
    """Look at the text's events, which takes no recursion: libyaml's has no bounds, and would end the process."""
    depth = nodes_count = 0
    quick: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with contextlib.suppress(yaml.YAMLError):  # told better by whoever composes it
        for event in yaml.parse(text, Loader=quick):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH_MAX:
                raise YamlError("is nested too deeply")
            if not trusted and isinstance(event, yaml.NodeEvent):
                nodes_count += 1
                _check_untrusted(event, nodes_count)


def _check_untrusted(event: yaml.NodeEvent, nodes_count: int) -> None:
    line = event.start_mark.line + 1 if event.start_mark else None
    if isinstance(event, yaml.AliasEvent):
        raise YamlError(f"*{event.anchor} is an alias: write out what it stands for", line)
    if event.anchor is not None:
        raise YamlError(f"&{event.anchor} is an anchor: leave it out, as aliases are not accepted here", line)
    if nodes_count > UNTRUSTED_NODES_MAX:
        raise YamlError(f"has more than {UNTRUSTED_NODES_MAX} keys and values")


def read_yaml_text(text: str, read: Callable[[YamlNode], ResultT], *, trusted: bool = True) -> ResultT:
    """What `read` makes of a text. One that is not trusted has no aliases, and so many nodes at most.

    :raises YamlError: When it is no YAML, is nested too deeply, is beyond its bounds, or `read` objects.
    """
    _check_bounds(text, trusted=trusted)
    try:
        node = compose(text)
    except yaml.YAMLError as error:
        raise _no_yaml(error) from None
    if node is None:
        raise YamlError("is empty")
    return read(YamlNode(node, ""))


def compose(text: str) -> yaml.Node | None:
    """The nodes of a text; by libyaml where PyYAML came with it, which is ten times as fast but less clear in errors.

    :raises yaml.YAMLError: When it is no YAML.
    """
    quick: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    node: yaml.Node | None
    try:
        node = yaml.compose(text, Loader=quick)
    except yaml.YAMLError:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    return node


def _no_yaml(error: yaml.YAMLError) -> YamlError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return YamlError(f"is no YAML: {error.problem}", error.problem_mark.line + 1)
    return YamlError(f"is no YAML: {error}")


def _is_utf8(text: str) -> bool:
    """Whether no lone surrogate is in it, which no request can carry."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    text = repr(node.value)
    return f"{text[:_SHOWN_CHARACTERS_MAX]}..." if len(text) > _SHOWN_CHARACTERS_MAX else text
