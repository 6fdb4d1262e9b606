"""Indexes of evaluators: the community's format and invalid files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import PermanentFetchError
from agentci.model.program import CatalogEntry
from agentci.remote.sources.validation import (
    MAX_INDEX_BYTES,
    MAX_TAGS,
    MAX_TEXT,
    find_ref_problem,
    parse_index,
)

COMMUNITY = """\
# Generated. Do not edit.
generatedAt: "2026-05-04T10:11:12Z"
evaluators:
  - name: response_quality
    description: Checks that an answer is long enough
    language: python
    path: evaluators/response_quality/response_quality.py
    tags: [quality, length]
    author: someone
    lastUpdated: "%Y->-T0123abc:%M:HEADZ"
  - name: contains
    description: ""
    language: javascript
    path: evaluators/contains/contains.js
    tags: []
    author: ""
    lastUpdated: 2026-13-45
"""
WORDS = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")))
HINT = "it needs `evaluators:`, a list of entries with `name` and `path`"


def parse(text: str | bytes) -> tuple[CatalogEntry, ...]:
    content = text.encode() if isinstance(text, str) else text
    return parse_index(
        content,
        name="index.yaml of org/evals",
        source="github",
        is_usable=lambda path: find_ref_problem(path) is None,
    )


def only(entry: str) -> CatalogEntry:
    (listing,) = parse(f"evaluators: [{entry}]")
    return listing


class TestIndex:
    def test_evaluators_are_listed_in_index_order(self) -> None:
        assert parse(COMMUNITY) == (
            CatalogEntry(
                name="response_quality",
                source="github",
                ref="evaluators/response_quality/response_quality.py",
                description="Checks that an answer is long enough",
                language="python",
                tags=("quality", "length"),
                author="someone",
            ),
            CatalogEntry(
                name="contains",
                source="github",
                ref="evaluators/contains/contains.js",
                language="javascript",
            ),
        )

    def test_empty_index_is_valid(self) -> None:
        assert parse("evaluators: []") == ()

    def test_entry_needs_only_a_path(self) -> None:
        assert only("{path: a/b.py}") == CatalogEntry(name="b", source="github", ref="a/b.py")

    @pytest.mark.parametrize("path", ["", "7", "../x.py", "/x.py", "null", "[a]", "{a: b}", "true"])
    def test_entry_with_unusable_path_is_skipped(self, path: str) -> None:
        index = f"evaluators: [{{name: bad, path: {path}}}, 7, [], {{}}, {{name: q, path: q.py}}]"
        assert [listing.name for listing in parse(index)] == ["q"]

    def test_fields_are_cleaned_to_printable_text(self) -> None:
        listing = only(
            r'{path: q.py, name: 7, description: "a\e[31m\n  b\u202e\0", tags: [1, a, [b], ""],'
            " author: [x], language: true}"
        )
        assert listing == CatalogEntry(
            name="7", source="github", ref="q.py", description="a[31m b", tags=("1", "a")
        )

    def test_long_description_and_tags_are_truncated(self) -> None:
        listing = only(f"{{path: q.py, description: {'x' * 9999}, tags: [{'t, ' * 99}]}}")
        assert (len(listing.description), len(listing.tags)) == (MAX_TEXT, MAX_TAGS)


class TestInvalidIndex:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "cannot be read: the file is empty on line 1"),
            (b"- a\n- b\n", "cannot be read: "),
            (b"404: Not Found", "has no `evaluators` list"),
            (b"just words", "cannot be read: "),
            (b"<!DOCTYPE html>\n<p a='b: c'>: %", "cannot be read: "),
            (b"evaluators: [", "cannot be read: invalid YAML"),
            (b"\xff\xfe\x00", "cannot be read: the file is UTF-16 or UTF-32, not UTF-8 on line 1"),
            (b"a: &a [*a, *a]\n", "cannot be read: "),
            (b"[" * 5000, "cannot be read: "),
            (b"evaluators: 7", "has no `evaluators` list"),
            (b"evaluators: {a: b}", "has no `evaluators` list"),
            (b"evals: []", "has no `evaluators` list"),
            (b"evaluators: [{name: a}, {path: ../x}]", "has no entry with a valid `path`"),
        ],
    )
    def test_invalid_index_is_rejected_with_reason(self, content: bytes, message: str) -> None:
        with pytest.raises(PermanentFetchError) as error:
            parse(content)
        assert str(error.value).startswith(f"index.yaml of org/evals {message}")
        assert error.value.hint == HINT

    def test_index_over_size_limit_is_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match="is larger than 1 MiB"):
            parse(b" " * (MAX_INDEX_BYTES + 1))

    @given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
    def test_arbitrary_content_is_rejected(self, content: bytes) -> None:
        with pytest.raises(PermanentFetchError):
            parse(content)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | WORDS,
            lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
        )
    )
    def test_invalid_entry_does_not_hide_valid_entry(self, value: object) -> None:
        entries = [{"name": value, "path": "a.py", "tags": value, "description": value}, value]
        index = json.dumps({"evaluators": entries}, ensure_ascii=False)  # JSON is YAML
        assert [listing.ref for listing in parse(index)] == ["a.py"]
