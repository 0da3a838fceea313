"""Edits a YAML text to hold other values, and keeps comments, order and blank lines. Pure.

Only lines that differ are touched: values are replaced in place, new keys are added behind existing ones,
removed ones are cut out. Comments above removed keys stay.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from barnabas.base.yaml_nodes import compose


class Replacement(NamedTuple):
    """Characters from `start` to before `end`, and the text to put there instead."""

    start: int
    end: int
    text: str


class CannotEdit(ValueError):
    """A text that cannot be edited in place, for example because of anchors."""


Dump = Callable[[Any], str]


def edited(text: str, tree: Any, dump: Dump) -> str:
    """The text changed to hold `tree`; `dump` writes new values in block style.

    :raises CannotEdit: When the result would not hold `tree`.
    """
    node = compose(text)
    if node is None:
        return text + dump(tree)
    for replacement in sorted(_Editor(text, dump).replacements(node, tree, 0), reverse=True):
        text = text[: replacement.start] + replacement.text + text[replacement.end :]
    if not _holds(text, tree):
        raise CannotEdit("the file says things in ways that cannot be changed in place: export to a new one")
    return text


def _holds(text: str, tree: Any) -> bool:
    try:
        return bool(_plain(compose(text)) == _texts(tree))
    except yaml.YAMLError:
        return False


def typed(node: yaml.Node) -> Any:
    """A node's value: numbers and booleans if they are written as they are dumped, else text."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: typed(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [typed(each) for each in node.value]
    value = yaml.constructor.SafeConstructor().construct_object(node)
    return value if _texts(value) == _plain(node) else str(node.value)


def _plain(node: yaml.Node | None) -> Any:
    """A node's value with scalars as text."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    assert isinstance(node, yaml.ScalarNode)
    return None if node.tag.endswith(":null") else str(node.value)


def _texts(value: Any) -> Any:
    """A tree with its scalars as YAML writes them."""
    if isinstance(value, dict):
        return {str(key): _texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


class _Editor:
    def __init__(self, text: str, dump: Dump) -> None:
        self._text = text
        self._dump = dump
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def replacements(self, node: yaml.Node, value: Any, indent: int) -> Iterator[Replacement]:
        """The edits below a node whose content is indented by `indent` columns."""
        if _plain(node) == _texts(value):
            return
        if isinstance(node, yaml.MappingNode) and isinstance(value, dict) and value and not node.flow_style:
            yield from self._mapping(node, {str(key): each for key, each in value.items()})
        elif (
            isinstance(node, yaml.SequenceNode) and isinstance(value, list) and value and not node.flow_style
        ):
            yield from self._sequence(node, value, indent)
        else:
            yield self._replaced(node, value, indent)

    def _mapping(self, node: yaml.MappingNode, value: dict[str, Any]) -> Iterator[Replacement]:
        column = node.start_mark.column
        there = {}
        for key, inner in node.value:
            there[key.value] = inner
            if key.value in value:
                yield from self.replacements(inner, value[key.value], column + 2)
            else:
                yield self._cut(key.start_mark.line, inner)
        new = {key: each for key, each in value.items() if key not in there}
        if new:
            yield self._put_behind(node, self._dump(new), column)

    def _sequence(self, node: yaml.SequenceNode, value: list[Any], indent: int) -> Iterator[Replacement]:
        """Keep matching items and add new ones; write the list again when its order differs."""
        left = [(_texts(each), each) for each in value]
        gone = []
        for item in node.value:
            if left and _plain(item) == left[0][0]:
                left.pop(0)
            else:
                gone.append(item)
        if len(left) == len(value):
            yield self._replaced(node, value, indent)
            return
        for item in gone:
            yield self._cut(item.start_mark.line, item)
        if left:
            items = "".join(self._item(each) for _, each in left)
            yield self._put_behind(node, items, node.start_mark.column)

    def _item(self, value: Any) -> str:
        """Lines of a list item, written like a mapping's value without its key."""
        text = self._dump({"key": value}).partition(":")[2]
        return "-" + (" " + text.lstrip("\n ") if text.startswith("\n") else text)

    def _replaced(self, node: yaml.Node, value: Any, indent: int) -> Replacement:
        """A value written in place: on the same line if it fits, else on lines of its own."""
        start = self._offset(node.start_mark)
        text = self._dump({"key": value}).partition(":")[2].removesuffix("\n")
        end = self._end(node)
        if text.startswith("\n"):
            lines = text.removeprefix("\n").split("\n")
            head = self._text[:start].rstrip(" ")
            pad = " " * max(indent - 2, 0)
            return Replacement(len(head), end, "\n" + "\n".join(pad + line for line in lines))
        lead = " " if self._text[start - 1 : start] == ":" else ""
        return Replacement(start, end, lead + text.strip(" "))

    def _cut(self, first_line: int, node: yaml.Node) -> Replacement:
        """Whole lines up to the node's last one."""
        end = self._end(node)
        last_line = self._text.count("\n", 0, max(end - 1, 0))
        return Replacement(self._starts[first_line], self._starts[last_line + 1], "")

    def _put_behind(self, node: yaml.Node, text: str, column: int) -> Replacement:
        """Lines behind the node's last one."""
        last_line = self._text.count("\n", 0, self._end(node))
        at = self._starts[min(last_line + 1, len(self._starts) - 1)]
        lead = "" if at == 0 or self._text[at - 1] == "\n" else "\n"
        lines = [(" " * column + line if line else line) for line in text.splitlines()]
        return Replacement(at, at, lead + "\n".join(lines) + "\n")

    def _end(self, node: yaml.Node) -> int:
        """The end of a node without trailing blanks and comments: PyYAML puts the end of block nodes later."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        return self._offset(node.end_mark)

    def _offset(self, mark: Any) -> int:
        return int(self._starts[mark.line] + mark.column)
