"""Hold real answers against ``docs/openapi.yaml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import yaml

METHODS = ("get", "post", "put", "patch", "delete")
DESCRIPTION: dict[str, Any] = yaml.load(
    (Path(__file__).parents[2] / "docs" / "openapi.yaml").read_text(),
    # The loader in C, where there is one: every worker of pytest reads this.
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)


def validate(schema: dict[str, Any], value: Any) -> None:
    """Raise `jsonschema.ValidationError` unless `value` is as `schema` says."""
    whole = schema | {"components": DESCRIPTION["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def validate_named(name: str, value: Any) -> None:
    """Validate against one of the named schemas."""
    validate({"$ref": f"#/components/schemas/{name}"}, value)


def described(method: str, path: str) -> dict[str, Any] | None:
    """Return the description of an operation, `None` if there is none."""
    for template, operations in DESCRIPTION["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), "/" + path.split("?")[0]):
            operation: dict[str, Any] | None = operations.get(method.lower())
            return operation
    return None


def answer_schema(method: str, path: str, status: int, content_type: str) -> dict[str, Any] | None:
    """Return the schema of an answer's body, `None` if the answer has none.

    Raises
    ------
    AssertionError
        If the description does not know of such an answer.
    """
    operation = described(method, path)
    assert operation, f"{method} {path} is not described"
    response = operation["responses"].get(str(status))
    assert response, f"{method} {path} does not describe the answer {status}"
    if reference := response.get("$ref"):
        response = DESCRIPTION["components"]["responses"][reference.rpartition("/")[2]]
    if "content" not in response:
        return None
    assert content_type in response["content"], f"{method} {path}: {status} as {content_type}"
    schema: dict[str, Any] = response["content"][content_type]["schema"]
    return schema
