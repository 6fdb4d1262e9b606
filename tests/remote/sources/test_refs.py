"""What repositories, revisions and paths may look like."""

import pytest

from agentci.errors import PermanentFetchError
from agentci.remote.sources.validation import (
    check_ref,
    check_repository,
    check_revision,
    find_file_name_problem,
    find_ref_problem,
    normalize_sha256,
)

HOSTILE_REFS = {
    "": "has 0 characters; 1 to 512 are allowed",
    "x" * 513: "has 513 characters; 1 to 512 are allowed",
    "a/" * 16 + "b.py": "has 17 parts; the limit is 16",
    "/abs/evil.py": "is absolute",
    "../x.py": "has the part '..', which is not allowed",
    "a/../../attacker/repo/main/x.py": "has the part '..', which is not allowed",
    "./x.py": "has the part '.', which is not allowed",
    "a//x.py": "has an empty part",
    "a/": "has an empty part",
    "%2e%2e/x.py": "has the part '%2e%2e', which is not allowed",
    "a%2fx.py": "has the part 'a%2fx.py', which is not allowed",
    "a\\..\\x.py": r"has the part 'a\\..\\x.py', which is not allowed",
    ".hidden/x.py": "has the part '.hidden', which is not allowed",
    "-rf/x.py": "has the part '-rf', which is not allowed",
    "a b.py": "has the part 'a b.py', which is not allowed",
    "x..py": "has the part 'x..py', which is not allowed",
    "x.py\n": r"has the part 'x.py\n', which is not allowed",
    "\N{FULLWIDTH FULL STOP}/x.py": "has the part '．', which is not allowed",  # noqa: RUF001
    "x.py?ref=evil": "has the part 'x.py?ref=evil', which is not allowed",
    "x.py#y": "has the part 'x.py#y', which is not allowed",
}


class TestRefs:
    @pytest.mark.parametrize(
        "ref",
        [
            "x.py",
            "evaluators/quality/quality.py",
            "a_b/c-d/e.f.py",
            "_x/1.js",
            "x" * 512,
            "LICENSE",
        ],
    )
    def test_are_plain_paths_in_a_repository(self, ref: str) -> None:
        check_ref(ref)

    @pytest.mark.parametrize(("ref", "reason"), HOSTILE_REFS.items(), ids=range(len(HOSTILE_REFS)))
    def test_that_lead_elsewhere_are_refused(self, ref: str, reason: str) -> None:
        assert find_ref_problem(ref) == reason

    def test_are_refused_with_the_way_to_write_them(self) -> None:
        with pytest.raises(
            PermanentFetchError, match=r"the ref '\.\./x\.py' has the part '\.\.'"
        ) as refusal:
            check_ref("../x.py")
        assert refusal.value.hint == (
            "write the path of the program in the repository, like evaluators/NAME/NAME.py"
        )


class TestRepositories:
    @pytest.mark.parametrize("repository", ["org/name", "o-r-g/na.me_1", "me_corp/x", "1/..."])
    def test_are_an_owner_and_a_name(self, repository: str) -> None:
        check_repository(repository)

    @pytest.mark.parametrize(
        "repository",
        [
            "name",
            "/name",
            "org/",
            "a/b/c",
            "org/..",
            "org/.",
            "-a/b",
            "a b/c",
            "a/b?x",
            "a/b\n",
            "ä/b",
        ],
    )
    def test_of_any_other_form_are_refused(self, repository: str) -> None:
        with pytest.raises(PermanentFetchError, match="is not a GitHub repository") as refusal:
            check_repository(repository)
        assert refusal.value.hint == "write `owner/name`"

    @pytest.mark.parametrize(
        "address",
        [
            "https://github.com/org/na.me",
            "https://github.com/org/na.me.git",
            "git@github.com:org/na.me",
        ],
    )
    def test_are_understood_where_an_address_stands(self, address: str) -> None:
        with pytest.raises(PermanentFetchError) as refusal:
            check_repository(address)
        assert refusal.value.hint == "write 'org/na.me'"


class TestRevisions:
    @pytest.mark.parametrize(
        "revision", ["main", "feature/x", "v1.0", "refs/heads/x", "8c1f2a0", "100%", "ä", "a@b"]
    )
    def test_are_names_that_git_takes(self, revision: str) -> None:
        check_revision(revision)

    @pytest.mark.parametrize(
        "revision",
        [
            *(
                "",
                "-x",
                "a..b",
                "a b",
                "a\tb",
                "a\nb",
                "a:b",
                "a~1",
                "a^",
                "a?",
                "a*",
                "a[",
                "a\\b",
            ),
            *("/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "@", "a@{1}", "a\x00"),
            *("a\x7f", "a\N{NO-BREAK SPACE}b", "a\udcff", "x" * 251),
        ],
    )
    def test_that_git_refuses_are_refused(self, revision: str) -> None:
        with pytest.raises(PermanentFetchError, match="is not the name of a branch, tag or commit"):
            check_revision(revision)


class TestPathsInAFolder:
    @pytest.mark.parametrize(
        "path", ["a b.txt", "日本/ü.py", ".hidden", "a/-x", "a..b", "C/x", "…"]
    )
    def test_may_be_named_freely(self, path: str) -> None:
        assert find_file_name_problem(path) is None

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("/etc/passwd", "is absolute"),
            ("C:/x", "is absolute"),
            ("c:x", "is absolute"),
            ("", "must have 1 to 512 characters"),
            ("x" * 513, "must have 1 to 512 characters"),
            ("a\\b", "has a character that is not allowed"),
            ("a\0b", "has a character that is not allowed"),
            ("a\nb", "has a character that is not allowed"),
            ("a\udcff", "has a character that is not allowed"),
            ("..", "leaves its folder"),
            ("a/../../b", "leaves its folder"),
            ("a//b", "has an empty part"),
            ("a/./b", "has an empty part"),
            ("a/", "has an empty part"),
            ("ä" * 128, "has a part of more than 255 bytes"),
        ],
    )
    def test_that_lead_elsewhere_are_refused(self, path: str, reason: str) -> None:
        assert find_file_name_problem(path) == reason


class TestDigests:
    def test_are_written_in_one_way(self) -> None:
        assert normalize_sha256(f" sha256:{'AB' * 32} ") == "ab" * 32

    @pytest.mark.parametrize("text", ["", "ab", "g" * 64, "ab" * 33, "sha1:" + "ab" * 20])
    def test_of_another_form_are_refused(self, text: str) -> None:
        with pytest.raises(PermanentFetchError, match="is not a sha256"):
            normalize_sha256(text)
