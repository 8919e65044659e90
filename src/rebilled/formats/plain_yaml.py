"""YAML as plain values: texts, bytes, numbers, lists and objects; no tag ever makes anything else."""

from __future__ import annotations

from functools import cache
from typing import Any

_UNUSED = ("timestamp", "merge", "value")


def load_plain(text: bytes) -> Any:
    """The value that a YAML text holds. Raises ValueError, in one line, for what is no YAML."""
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None


@cache
def _loader() -> Any:
    """A loader that drops unknown tags and leaves times and merge keys as text.

    Made when it is first needed: the registry imports this module, and YAML is slow to import.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("PlainLoader", (base,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _UNUSED]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    loader.add_constructor(None, _read_plain)
    loader.add_constructor("!binary", _read_binary)
    loader.add_constructor("tag:yaml.org,2002:timestamp", _read_plain)
    return loader


def _read_plain(loader: Any, node: Any) -> Any:
    """The value of a node, whatever its tag says."""
    if node.id == "mapping":
        return loader.construct_mapping(node, deep=True)
    if node.id == "sequence":
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


def _read_binary(loader: Any, node: Any) -> bytes:
    found: bytes = loader.construct_yaml_binary(node)
    return found
