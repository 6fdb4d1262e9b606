"""What is asked of GitHub's API is what GitHub describes, and its refusals name a way out."""

from collections.abc import Callable

import pytest

from agentci.errors import GitHubError
from agentci.github.api_client import MAX_PAGES, GitHubApi, read_api_access
from tests._util.http.patience import Patience
from tests._util.http.servers import Answer, Raw, head, script, serve
from tests.github.api.description import NEEDS_DESCRIPTION, UndescribedError
from tests.github.api.hub import REPOSITORY, TOKEN, Hub, Reply, limited

pytestmark = NEEDS_DESCRIPTION
COMMENTS = "issues/7/comments"


@pytest.fixture
def api(hub: Hub, patience: Patience) -> GitHubApi:
    return GitHubApi(read_api_access(hub.environ), patience.client())


def refused(ask: Callable[[], object]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        ask()
    return caught.value


class TestWhatIsAsked:
    def test_is_made_changed_and_listed(self, api: GitHubApi, hub: Hub) -> None:
        made = api.post(COMMENTS, {"body": "one"})
        api.patch(
            f"issues/comments/{made['id']}", {"body": "tw\N{LATIN SMALL LETTER O WITH STROKE}"}
        )
        assert [each["body"] for each in api.pages(COMMENTS)] == [
            "tw\N{LATIN SMALL LETTER O WITH STROKE}"
        ]
        assert [each.operation for each in hub.asked] == [
            "issues/create-comment",
            "issues/update-comment",
            "issues/list-comments",
        ]

    def test_is_a_list_on_as_many_pages_as_there_are(self, api: GitHubApi, hub: Hub) -> None:
        for number in range(250):
            hub.add_comment(7, f"{number}")
        assert [each["body"] for each in api.pages(COMMENTS)] == [f"{n}" for n in range(250)]
        assert [each.query for each in hub.asked] == [
            {"per_page": 100, "page": page} for page in (1, 2, 3)
        ]

    def test_is_no_page_more_than_is_taken(self, api: GitHubApi, hub: Hub) -> None:
        for number in range(250):
            hub.add_comment(7, f"{number}")
        assert next(api.pages(COMMENTS))["body"] == "0"
        assert hub.count("issues/list-comments") == 1

    def test_ends_where_pages_do_not(self, api: GitHubApi, hub: Hub) -> None:
        more = {"Link": f'<{hub.url}/x>; rel="next"'}
        hub.operations["issues/list-comments"] = lambda _: Reply(body=[], headers=more)
        assert list(api.pages(COMMENTS)) == []
        assert hub.count("issues/list-comments") == MAX_PAGES

    def test_is_a_list_inside_of_a_document(self, api: GitHubApi, hub: Hub) -> None:
        hub.add_artifact(3, "agentci", b"zip")
        hub.add_artifact(4, "agentci", b"other")
        found = list(api.pages("actions/runs/3/artifacts", {"name": "agentci"}, items="artifacts"))
        assert [each["size_in_bytes"] for each in found] == [3]

    def test_is_of_the_whole_api_with_a_slash(self, api: GitHubApi, hub: Hub) -> None:
        hub.viewer = {"login": "ada"}
        viewer = api.get("/user")
        assert isinstance(viewer, dict)
        assert viewer["login"] == "ada"

    def test_is_bytes_that_lie_on_another_host_which_sees_no_token(
        self, api: GitHubApi, hub: Hub
    ) -> None:
        number = hub.add_artifact(3, "agentci", b"zip")["id"]
        path = f"actions/artifacts/{number}/zip"
        assert api.download(path, limit_bytes=10) == b"zip"
        assert "the limit is 2 bytes" in str(refused(lambda: api.download(path, limit_bytes=2)))


class TestWhatIsInTheWay:
    def test_is_the_lack_of_a_permission(self, api: GitHubApi, hub: Hub) -> None:
        hub.denied = {"issues/create-comment", "actions/list-workflow-run-artifacts"}
        error = refused(lambda: api.post(COMMENTS, {"body": "x"}))
        assert str(error) == (
            "GitHub answered 403 for POST issues/7/comments "
            "(Resource not accessible by integration)"
        )
        assert error.hint == "the job needs `permissions: pull-requests: write`"
        assert error.denied
        error = refused(lambda: list(api.pages("actions/runs/3/artifacts", items="artifacts")))
        assert error.hint == "the job needs `permissions: actions: read`"

    def test_is_that_we_are_nobody(self, api: GitHubApi) -> None:
        error = refused(lambda: api.get("/user"))
        assert (error.status, error.hint) == (403, "check the permissions of the token")

    def test_is_a_token_that_is_not_valid(self, hub: Hub, patience: Patience) -> None:
        environ = hub.environ | {"INPUT_GITHUB-TOKEN": "old"}
        error = refused(
            lambda: GitHubApi(read_api_access(environ), patience.client()).get(COMMENTS)
        )
        assert (error.status, error.denied) == (401, False)
        assert "github-token" in str(error.hint)
        assert "old" not in f"{error} {error.hint}"

    def test_is_that_it_is_not_there(self, api: GitHubApi) -> None:
        error = refused(lambda: api.patch("issues/comments/1", {"body": "x"}))
        assert error.status == 404
        assert str(error.hint).endswith("needs `permissions: pull-requests: write`")

    def test_is_what_cannot_be_mended(self, api: GitHubApi) -> None:
        error = refused(lambda: api.post(COMMENTS, {"body": "x" * 65_537}))
        assert str(error) == "GitHub answered 422 for POST issues/7/comments (Validation Failed)"

    @pytest.mark.parametrize("name", ["GITHUB_REPOSITORY", "INPUT_GITHUB-TOKEN"])
    def test_is_what_is_not_set(self, name: str, hub: Hub, patience: Patience) -> None:
        environ = {key: value for key, value in hub.environ.items() if key != name}
        error = refused(
            lambda: GitHubApi(read_api_access(environ), patience.client()).get(COMMENTS)
        )
        assert "set" in str(error.hint)
        assert hub.asked == []

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"<html>", "is not JSON"),
            (b"[" * 100_000, "is not JSON"),
            (b"[]", "is not a JSON object"),
        ],
    )
    def test_is_an_answer_that_makes_no_sense(
        self, body: bytes, said: str, api: GitHubApi, hub: Hub
    ) -> None:
        hub.faults["issues/create-comment"] = [Answer(status=201, body=body)]
        assert said in str(refused(lambda: api.post(COMMENTS, {"body": "x"})))

    def test_is_a_page_that_is_no_list(self, api: GitHubApi, hub: Hub) -> None:
        hub.faults["issues/list-comments"] = [Answer(body=b"{}")]
        assert "is not a list" in str(refused(lambda: list(api.pages(COMMENTS))))

    def test_is_a_refusal_without_words(self, api: GitHubApi, hub: Hub) -> None:
        hub.faults["issues/create-comment"] = [Answer(status=418, body=b"tea")]
        error = refused(lambda: api.post(COMMENTS, {"body": "x"}))
        assert str(error) == "GitHub answered 418 for POST issues/7/comments"

    def test_is_that_nobody_is_there(self, patience: Patience) -> None:
        environ = {"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_REPOSITORY": REPOSITORY}
        client = GitHubApi(read_api_access(environ | {"GITHUB_TOKEN": TOKEN}), patience.client())
        assert " (5 attempts)" in str(refused(lambda: client.get(COMMENTS)))


class TestABusyServer:
    def test_is_left_alone_as_long_as_it_asks(
        self, api: GitHubApi, hub: Hub, patience: Patience
    ) -> None:
        hub.faults["issues/create-comment"] = [limited(Retry_After="7"), limited()]
        api.post(COMMENTS, {"body": "x"})
        assert patience.slept == pytest.approx(67)
        assert [len(each) for each in hub.comments.values()] == [1]

    @pytest.mark.parametrize("status", [500, 502, 503])
    def test_is_asked_again_for_what_may_be_done_twice(
        self, status: int, api: GitHubApi, hub: Hub
    ) -> None:
        number = hub.add_comment(7, "old")["id"]
        hub.faults["issues/update-comment"] = [Answer(status=status)]
        assert api.patch(f"issues/comments/{number}", {"body": "new"})["body"] == "new"

    def test_is_not_asked_again_for_what_may_be_done_by_now(self, api: GitHubApi, hub: Hub) -> None:
        hub.faults["issues/create-comment"] = [Answer(status=502)]
        error = refused(lambda: api.post(COMMENTS, {"body": "x"}))
        assert "the server may have processed the request" in str(error)
        assert hub.count("issues/create-comment") == 1

    def test_that_breaks_off_may_have_done_it(self, patience: Patience) -> None:
        half = Raw(pieces=[head(201, "Content-Length: 9"), b"x"])
        with serve(script(half)) as server:
            environ = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": REPOSITORY}
            client = GitHubApi(
                read_api_access(environ | {"GITHUB_TOKEN": TOKEN}), patience.client()
            )
            assert "the server may have processed" in str(
                refused(lambda: client.post(COMMENTS, {"body": "x"}))
            )
        assert len(server.asked) == 1


class TestTheToken:
    def test_of_the_input_goes_before_that_of_the_environment(self) -> None:
        both = {"INPUT_GITHUB-TOKEN": " a\n", "GITHUB_TOKEN": "b"}
        assert read_api_access(both).token == "a"
        assert read_api_access({"GITHUB_TOKEN": "b"}).token == "b"

    def test_is_not_shown(self) -> None:
        assert "hush" not in repr(read_api_access({"GITHUB_TOKEN": "hush"}))


class TestTheDescription:
    """What holds the tests above to GitHub finds what is wrong."""

    @pytest.mark.parametrize(
        ("method", "target", "body", "said"),
        [
            ("POST", "/issues/7/commments", b"{}", "there is no POST"),
            ("DELETE", "/issues/7/comments", b"", "there is no DELETE"),
            ("GET", "/issues/7/comments?perpage=1", b"", "no parameter perpage"),
            ("GET", "/issues/7/comments?page=1&page=2", b"", "stands twice"),
            ("GET", "/issues/seven/comments", b"", "issue_number"),
            ("GET", "/issues/7/comments?page=two", b"", "page"),
            ("POST", "/issues/7/comments", b"", "None is not of type"),
            ("POST", "/issues/7/comments", b"{}", "'body' is a required property"),
            ("POST", "/issues/7/comments", b'{"body": 1}', "1 is not of type 'string'"),
            ("POST", "/issues/7/comments", b'{"body": "x", "text": "y"}', "no member .text"),
            ("GET", "/issues/7/comments", b"{}", "takes no body"),
        ],
    )
    def test_does_not_allow(
        self, method: str, target: str, body: bytes, said: str, hub: Hub
    ) -> None:
        with pytest.raises(UndescribedError, match=said):
            hub.description.question(method, f"/repos/{REPOSITORY}{target}", {}, body)

    @pytest.mark.parametrize(
        ("status", "body"), [(200, [{"id": 1}]), (202, []), (404, "not an object"), (400, [])]
    )
    def test_does_not_answer(self, status: int, body: object, hub: Hub) -> None:
        with pytest.raises(UndescribedError):
            hub.description.check_answer("issues/list-comments", status, body)
