"""Reads YAML; every error names the line, the key, the value and what would be right."""

import contextlib
import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import yaml

ResultT = TypeVar("ResultT")

_SHOWN_CHARACTERS_MAX = 60
_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_BOOLEANS = {_BOOL: _CONSTRUCTOR.construct_yaml_bool}
_NUMBERS = {_INT: _CONSTRUCTOR.construct_yaml_int, _FLOAT: _CONSTRUCTOR.construct_yaml_float}

_NO_TEXT = "contains an unpaired surrogate (\\ud800 to \\udfff)"

#: Deeper than any valid file.
_DEPTH_MAX = 50

#: For untrusted text; a topic with three configs has about ten.
UNTRUSTED_NODES_MAX = 100_000


#: libyaml's, if PyYAML includes it.
_FAST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(Exception):
    """Invalid content of a file; `line`, from 1, if the error belongs to one line."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


class YamlNode(NamedTuple):
    """A value in a file, and its path: `topics[0].partitions`."""

    node: yaml.Node
    path: str
    file: Path | None = None
    key_node: yaml.Node | None = None  #: the key of a value in a mapping

    def fail(self, expected: str) -> NoReturn:
        """:raises YamlError: With line, key, value and what would be right."""
        what = f"{self.path} is {_shown(self.node)}" if self.path else f"the file is {_shown(self.node)}"
        raise YamlError(f"{what}: {expected}", self.line)

    def fail_hidden(self, expected: str) -> NoReturn:
        """As `fail`, without the value, which may be a password."""
        raise YamlError(f"{self.path}: {expected}", self.line)

    @property
    def line(self) -> int:
        """Number of its first line, from 1."""
        return int(self.node.start_mark.line) + 1

    @property
    def position(self) -> str:
        """File and line: `cluster.yaml:7`."""
        return f"{self.file}:{self.line}"

    @property
    def folder(self) -> Path:
        """The absolute directory of its file, for relative paths."""
        assert self.file is not None
        return self.file.parent.absolute()

    @property
    def key(self) -> str:
        """Its key in the mapping that it is in."""
        assert self.key_node is not None
        return str(self.key_node.value)

    def key_of(self, value: "YamlNode") -> "YamlNode":
        """The key of a value of this mapping, as a node."""
        assert value.key_node is not None
        return YamlNode(value.key_node, f"a key of {self.path or 'the file'}", self.file)

    def at(self, key: str) -> "YamlNode":
        """The value of a key; the mapping itself if it does not have the key."""
        return self.mapping().get(key, self)

    def mapping(self, known: Collection[str] | None = None) -> "dict[str, YamlNode]":
        """Values by key. Duplicate keys are errors, as are keys not in `known`, if given."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail("must be a mapping (key: value)")
        path, file = self.path, self.file
        found: dict[str, YamlNode] = {}
        for key_node, value in self.node.value:
            key = key_node.value
            node = YamlNode(value, f"{path}.{key}" if path else str(key), file, key_node)
            if not isinstance(key, str):
                self.key_of(node).fail("must be text")
            if not _is_utf8(key):
                self.key_of(node).fail(_NO_TEXT)
            if known is not None and key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"valid are {', '.join(sorted(known))}"
                problem = f"unknown key {_shown(key_node)} in {path or 'the file'}; {hint}"
                raise YamlError(problem, self.key_of(node).line)
            if key in found:
                self.key_of(node).fail(f"is repeated, first in line {self.key_of(found[key]).line}")
            found[key] = node
        return found

    def items(self) -> "list[YamlNode]":
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail("must be a list ([a, b], or a line for each beginning with -)")
        return [
            YamlNode(node, f"{self.path}[{index}]", self.file) for index, node in enumerate(self.node.value)
        ]

    def text(self) -> str:
        """The scalar as it is written, of any type."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            self.fail("must be text")
        text: str = self.node.value
        if not _is_utf8(text):
            self.fail(_NO_TEXT)
        return text

    @property
    def is_null(self) -> bool:
        """Whether the value is empty."""
        return bool(self.node.tag == _NULL)

    @property
    def boolean(self) -> bool | None:
        """Its value if it is a boolean."""
        value = self._tagged(_BOOLEANS)
        return value if isinstance(value, bool) else None

    @property
    def number(self) -> float | None:
        """Its value if it is a number: an int or a float, as it is written."""
        value = self._tagged(_NUMBERS)
        return value if isinstance(value, int | float) and value == value else None

    def _tagged(self, constructors: Mapping[str, Callable[[yaml.ScalarNode], object]]) -> object:
        """The value by its tag; None if the tag has no constructor, or belies the value."""
        construct = constructors.get(self.node.tag)
        if construct is None or not isinstance(self.node, yaml.ScalarNode):
            return None
        with contextlib.suppress(ValueError, LookupError):
            return construct(self.node)
        return None


def read_yaml(path: Path, read: Callable[[YamlNode], ResultT]) -> ResultT:
    """Read a file with `read`.

    :raises YamlError: When the file cannot be read, is not YAML, is nested too deeply, or `read` refuses it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise YamlError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise YamlError(f"must be in UTF-8: {error}") from None
    return read_yaml_text(text, read, file=path)


def _check_bounds(text: str, *, trusted: bool) -> None:
    """Check depth and size on the text's events, without recursion, as composing recurses to any depth.

    Where libyaml fails, PyYAML's own parser decides, as it does in `compose`. That happens within the bounds, too:
    libyaml has limits of its own and looks far ahead.
    """
    for loader in (_FAST_LOADER, yaml.SafeLoader):
        with contextlib.suppress(yaml.YAMLError):  # `compose` reports it with a better message
            _check_events(yaml.parse(text, Loader=loader), trusted=trusted)
            return


def _check_events(events: Iterator[yaml.Event], *, trusted: bool) -> None:
    depth = nodes_count = 0
    for event in events:
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


def read_yaml_text(
    text: str, read: Callable[[YamlNode], ResultT], *, trusted: bool = True, file: Path | None = None
) -> ResultT:
    """Read a text with `read`. Untrusted text may have no aliases and at most `UNTRUSTED_NODES_MAX` nodes.

    :raises YamlError: When it is not YAML, is too deep or too large, or `read` refuses it.
    """
    _check_bounds(text, trusted=trusted)
    try:
        node = compose(text)
    except yaml.YAMLError as error:
        raise _no_yaml(error) from None
    if node is None:
        raise YamlError("is empty")
    return read(YamlNode(node, "", file))


def compose(text: str) -> yaml.Node | None:
    """Compose the text's nodes: with libyaml if PyYAML includes it, ten times as fast; errors are PyYAML's, which are
    clearer.

    :raises yaml.YAMLError: When it is not YAML.
    """
    node: yaml.Node | None
    try:
        node = yaml.compose(text, Loader=_FAST_LOADER)
    except yaml.YAMLError:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    return node


def _no_yaml(error: yaml.YAMLError) -> YamlError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return YamlError(f"is not YAML: {error.problem}", error.problem_mark.line + 1)
    return YamlError(f"is not YAML: {error}")


def _is_utf8(text: str) -> bool:
    """Whether it has no lone surrogate, which no request can carry."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    text = repr(node.value)
    return f"{text[:_SHOWN_CHARACTERS_MAX]}..." if len(text) > _SHOWN_CHARACTERS_MAX else text
