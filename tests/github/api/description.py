"""Checks requests and responses against GitHub's own OpenAPI description."""

import copy
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from jsonschema import Draft4Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT4

from tests.services.servers import MODULES

FILE: Final = MODULES / "@octokit" / "openapi" / "generated" / "api.github.com.json"
NEEDS_DESCRIPTION: Final = pytest.mark.skipif(
    not FILE.is_file(), reason="npm could not install @octokit/openapi"
)
_URN: Final = "urn:github"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request that the description defines.

    Attributes:
        operation: its ``operationId`` (``issues/list-comments``).
        path: the path parameters by name, and ``query`` the query parameters; whole numbers as int.
        body: JSON; None without a body.
        headers: by name in lower case.
    """

    operation: str
    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]


class UndescribedError(Exception):
    """The description does not allow the request or response."""


class Description:
    """All operations of GitHub's API."""

    def __init__(self, document: Any) -> None:
        self._document = document
        resource = DRAFT4.create_resource(document)
        self._registry = Registry().with_resource(_URN, resource)
        self._templates = [(_pattern(path), path) for path in document["paths"]]

    def question(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> Question:
        """Read a request.

        Raises:
            UndescribedError: there is no such operation, or its parameters or body differ.
        """
        parts = urlsplit(target)
        template, values = self._template(method, parts.path)
        at = ("paths", template, method.lower())
        operation = self._at(*at)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        query = dict(pairs)
        if len(query) != len(pairs):
            raise UndescribedError(f"{target}: a parameter stands twice")
        body = json.loads(content) if content else None
        described = [self._resolved(each) for each in operation.get("parameters", ())]
        given = {
            place: self._checked(place, texts, described, target)
            for place, texts in (("path", values), ("query", query))
        }
        self._check_body(at, operation, body, f"{method} {target}")
        return Question(
            operation=operation["operationId"],
            path=given["path"],
            query=given["query"],
            body=body,
            headers=headers,
        )

    def check_answer(self, operation: str, status: int, body: object) -> None:
        """Check that the description allows this response.

        Raises:
            UndescribedError: it does not allow it.
        """
        at = self._operations[operation]
        responses = self._at(*at)["responses"]
        if str(status) not in responses:
            if status < 400:
                raise UndescribedError(f"{operation} does not answer {status}")
            self._check({"$ref": f"{_URN}#/components/schemas/basic-error"}, body, operation)
            return
        media = self._resolved(responses[str(status)]).get("content", {}).get(_JSON)
        if media is not None:
            self._check(self._absolute(media["schema"]), body, f"{operation}: answer {status}")

    def example(self, name: str, **changed: Any) -> Any:
        """An example from the description, with some members changed."""
        return {**copy.deepcopy(self._at("components", "examples", name)["value"]), **changed}

    @functools.cached_property
    def _operations(self) -> Mapping[str, tuple[str, str, str]]:
        return {
            operation["operationId"]: ("paths", path, method)
            for path, methods in self._document["paths"].items()
            for method, operation in methods.items()
        }

    def _template(self, method: str, path: str) -> tuple[str, dict[str, str]]:
        """The matching path template with the fewest parameters, and their values."""
        fitting = [
            (template, found)
            for pattern, template in self._templates
            if (found := pattern.fullmatch(path)) and method.lower() in self._at("paths", template)
        ]
        if not fitting:
            raise UndescribedError(f"there is no {method} {path}")
        template, found = min(fitting, key=lambda each: each[0].count("{"))
        return template, {name: unquote(value) for name, value in found.groupdict().items()}

    def _checked(
        self, place: str, given: Mapping[str, str], described: list[Any], target: str
    ) -> dict[str, Any]:
        known = {each["name"]: each for each in described if each["in"] == place}
        if unknown := given.keys() - known.keys():
            raise UndescribedError(f"{target}: no parameter {', '.join(sorted(unknown))}")
        required = {name for name, each in known.items() if each.get("required")}
        if missing := required - given.keys():
            raise UndescribedError(f"{target}: {', '.join(sorted(missing))} is missing")
        values = {name: _number_or_text(text, known[name]) for name, text in given.items()}
        for name, value in values.items():
            self._check(self._absolute(known[name]["schema"]), value, f"{target}: {name}")
        return values

    def _check_body(self, at: tuple[str, ...], operation: Any, body: Any, subject: str) -> None:
        described = operation.get("requestBody")
        if described is None:
            if body is not None:
                raise UndescribedError(f"{subject} takes no body")
            return
        if body is None and not described.get("required"):
            return
        steps = (*at, "requestBody", "content", _JSON, "schema")
        schema = {"$ref": f"{_URN}#{''.join(f'/{_step(step)}' for step in steps)}"}
        self._check(schema, body, subject)
        if unknown := list(self._unknown(self._at(*steps), body, "")):
            raise UndescribedError(f"{subject}: no member {', '.join(unknown)}")

    def _unknown(self, schema: Any, value: Any, where: str) -> Iterator[str]:
        """Members that the description does not define; GitHub would ignore them."""
        schema = self._resolved(schema)
        if isinstance(value, list):
            for each in value:
                yield from self._unknown(schema.get("items", {}), each, f"{where}[]")
        elif isinstance(value, dict) and (known := schema.get("properties")):
            for name, each in value.items():
                if name not in known:
                    yield f"{where}.{name}"
                else:
                    yield from self._unknown(known[name], each, f"{where}.{name}")

    def _check(self, schema: Any, value: object, subject: str) -> None:
        try:
            _Validator(schema, registry=self._registry).validate(value)
        except ValidationError as error:
            where = "/".join(map(str, error.absolute_path))
            raise UndescribedError(f"{subject}: {where}: {error.message[:300]}") from None

    def _absolute(self, schema: Any) -> Any:
        """The same schema with absolute references, for use outside the document."""
        text = json.dumps(schema).replace('"$ref": "#/', f'"$ref": "{_URN}#/')
        return json.loads(text)

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, dict) and "$ref" in value:
            return self._at(*value["$ref"].removeprefix("#/").split("/"))
        return value

    def _at(self, *steps: str) -> Any:
        return functools.reduce(lambda value, step: value[step], steps, self._document)


@functools.cache
def description() -> Description:
    """The description, read once per process."""
    return Description(json.loads(FILE.read_text("utf-8")))


def _lenient(keyword: str) -> Any:
    """A keyword that accepts null if the schema is ``nullable``, as OpenAPI 3.0 does."""
    check = Draft4Validator.VALIDATORS[keyword]

    def lenient(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if instance is None and schema.get("nullable"):
            return
        yield from check(validator, value, instance, schema) or ()

    return lenient


_Validator: Any = extend(  # type: ignore[no-untyped-call] # of its stubs
    Draft4Validator,
    {keyword: _lenient(keyword) for keyword in ("type", "enum", "allOf", "anyOf", "oneOf")},
)


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template)))


def _number_or_text(text: str, parameter: Any) -> int | str:
    return int(text) if re.fullmatch(r"\d+", text) and _may_be_number(parameter) else text


def _may_be_number(parameter: Any) -> bool:
    return "integer" in json.dumps(parameter["schema"])


def _step(step: str) -> str:
    return quote(step.replace("~", "~0").replace("/", "~1"), safe="~")
