"""YAML as plain values: texts, bytes, numbers, lists and objects; no tag ever makes anything else."""

from __future__ import annotations

from typing import Any

import yaml

_UNUSED = ("timestamp", "merge", "value")


def load_plain(text: bytes) -> Any:
    """The value that a YAML text holds. Raises ValueError, in one line, for what is no YAML."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None


class _Loader(yaml.CSafeLoader):
    """Plain values only: unknown tags are dropped, times and merge keys stay text."""


def _read_plain(loader: Any, *rest: Any) -> Any:
    node = rest[-1]
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


def _read_binary(loader: Any, node: Any) -> bytes:
    found: bytes = loader.construct_yaml_binary(node)
    return found


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _UNUSED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(None, _read_plain)
_Loader.add_constructor("!binary", _read_binary)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _read_plain)
