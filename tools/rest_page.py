"""Writes docs/rest-reference.md from docs/openapi.yaml: ``python -m tools.rest_page``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

_DOCS = Path(__file__).parent.parent / "docs"
PAGE = _DOCS / "rest-reference.md"
_HEAD = """# REST: all routes

`python -m tools.rest_page` makes this page from [openapi.yaml](openapi.yaml), which tools can read.
[REST](rest.md) has examples.
"""
_API = yaml.safe_load((_DOCS / "openapi.yaml").read_text())
_METHODS = ("get", "post", "patch", "delete")
_Json = dict[str, Any]


def page() -> str:
    """Return the text of the page."""
    blocks = [_HEAD, _API["info"]["description"]]
    for tag in _API["tags"]:
        blocks += [f"## Routes: {tag['name']}", tag.get("description", "")]
        for path, item in _API["paths"].items():
            blocks += [
                _route(method, path, item)
                for method in _METHODS
                if method in item and item[method]["tags"] == [tag["name"]]
            ]
    blocks.append("## Schemas")
    blocks += [_schema(name, one) for name, one in _API["components"]["schemas"].items()]
    return "\n\n".join(block.strip() for block in blocks if block.strip()) + "\n"


def _route(method: str, path: str, item: _Json) -> str:
    route = item[method]
    parameters = [
        _follow(one) for one in [*item.get("parameters", []), *route.get("parameters", [])]
    ]
    rows = [
        f"| `{one['name']}` | {_type(one['schema'])} | {_line(one.get('description', ''))} |"
        for one in parameters
    ]
    if "requestBody" in route:
        rows.append(f"| body | {_body(route['requestBody'])} | |")
    answers = [
        f"| {status} | {_body(answer)} | {_line(answer['description'])} |"
        for status, answer in sorted((s, _follow(a)) for s, a in route["responses"].items())
    ]
    parts = [f"### `{method.upper()} {path}`", route["summary"], route.get("description", "")]
    if rows:
        parts.append("\n".join(["| request | | |", "| --- | --- | --- |", *rows]))
    parts.append("\n".join(["| response | | |", "| --- | --- | --- |", *answers]))
    return "\n\n".join(part.strip() for part in parts if part)


def _schema(name: str, schema: _Json) -> str:
    required = schema.get("required", [])
    rows = [
        f"| `{field}`{'' if field in required else ' (optional)'} | {_type(one)} | "
        f"{_line(one.get('description', ''))} |"
        for field, one in schema.get("properties", {}).items()
    ]
    table = "\n".join(["| field | type | |", "| --- | --- | --- |", *rows])
    parts = [f"### {name}", schema.get("description", ""), table if rows else _type(schema)]
    return "\n\n".join(part.strip() for part in parts if part)


def _follow(one: _Json) -> _Json:
    while "$ref" in one:
        *_, kind, name = one["$ref"].split("/")
        one = _API["components"][kind][name]
    return one


def _body(message: _Json) -> str:
    kinds = [kind["schema"] for kind in message.get("content", {}).values()]
    return " or ".join(dict.fromkeys(_type(schema) for schema in kinds))


def _type(schema: _Json) -> str:
    """Say in a table what a value is."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    several = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
    if several:
        return " or ".join(dict.fromkeys(_type(one) for one in several))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(_type(schema | {"type": one}) for one in kind)
    if kind == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    if kind == "object" and isinstance(values := schema.get("additionalProperties"), dict):
        return f"object of {_type(values)}"
    return str(kind)


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
