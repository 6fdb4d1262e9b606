"""What models ruled: found among earlier replies, and told beside the judgement."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.workspace import is_file, real
from agentci.model.embedding import CompareEmbeddings
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import Judgement
from agentci.model.judging import AskModel, ModelReply
from agentci.model.ruling import Ruling
from agentci.model.values import replace
from agentci.runner.response_cache.circumstances import nth_key, words_of
from agentci.runner.services import World

# Members of the details of a check: who judged it, and where those were several, all of them.
ONE: Final = "judge"
SEVERAL: Final = "judges"


class Ruled(Struct, frozen=True, kw_only=True):
    """A ruling, by whom it was asked for, and what was asked."""

    name: str
    request: AskModel
    ruling: Ruling


class RecordedReplies:
    """The replies to one question that are kept in the cache.

    Attributes:
        found: the keys of those that were taken.
        kept: what keeps those that were made, once they turn out to be of use.

    Args:
        ordinal: how often the question was answered before, where several answers are wanted.
        said: is given all replies, also those that are of no use.
        anew: nothing is looked for.
    """

    def __init__(
        self,
        request: AskModel | CompareEmbeddings,
        world: World,
        ordinal: int,
        said: list[ModelReply],
        *,
        anew: bool,
    ) -> None:
        self.found: list[bytes] = []
        self.kept: list[Callable[[], None]] = []
        self._ordinal = ordinal
        self._said = said
        self._anew = anew
        self._replies = None if request.panel.replay == "never" else world.replies
        self._digest: bytes | None = None
        if self._replies is not None:
            self._digest = self._replies.digest_of(request, _files(request, world))

    def alone(self, number: int) -> AbstractContextManager[object]:
        """Have nobody else look for the same one until it is kept."""
        if self._replies is None or self._digest is None:
            return nullcontext()
        return self._replies.alone(self._key(self._digest, number))

    def find(self, number: int) -> ModelReply | None:
        """One of an earlier run or this one; None where there is none."""
        if self._replies is None or self._digest is None or self._anew:
            return None
        key = self._key(self._digest, number)
        reply = self._replies.said(key)
        if reply is not None:
            self.found.append(key)
        return reply

    def keep(self, number: int, reply: ModelReply) -> None:
        """Take one for later runs."""
        replies = self._replies
        if replies is not None and self._digest is not None:
            key = self._key(self._digest, number)
            replies.share(key, reply)
            self.kept.append(lambda: replies.keep_said(key, reply))

    def hear(self, reply: ModelReply) -> None:
        """Take note of any reply, whether it gives a verdict or not."""
        self._said.append(reply)

    def _key(self, digest: bytes, number: int) -> bytes:
        from agentci.runner.response_cache.judge_entries import sample_key  # noqa: PLC0415 (of no use to most runs)

        return nth_key(sample_key(digest, number), self._ordinal)


def with_rulings(judgement: Judgement, rulings: Sequence[Ruled], world: World) -> Judgement:
    """The judgement with what models had to do with it; what recorded replies saved is counted."""
    if not rulings:
        return judgement
    from agentci.judges.budget import charge_of  # noqa: PLC0415 (of no use to most runs)

    for each in rulings:
        settings = each.request.panel.settings
        for reply in each.ruling.recorded:
            saved = charge_of(each.request.question, settings, reply)
            world.budgets[each.request.panel.payer].save(saved)
    own: JsonObject = (
        {ONE: _told(rulings[0])}
        if len(rulings) == 1
        else {SEVERAL: [{"name": each.name, **_told(each)} for each in rulings]}
    )
    return replace(judgement, details={**own, **judgement.details})


def _told(ruled: Ruled) -> JsonObject:
    """The same where replies are found again: of those alone that gave verdicts."""
    panel, ruling = ruled.request.panel, ruled.ruling
    return {
        "model": panel.settings.model or " ".join(panel.settings.command),
        "samples": panel.samples,
        "verdicts": len(ruling.verdicts),
        "split": ruling.is_split,
        "tokens": {
            "read": _sum([each.tokens_in for each in ruling.replies]),
            "written": _sum([each.tokens_out for each in ruling.replies]),
        },
    }


def _sum(counted: Sequence[int | None]) -> Json:
    """Of tokens; None where a service did not count."""
    known = [each for each in counted if each is not None]
    return sum(known) if len(known) == len(counted) else None


def _files(request: AskModel | CompareEmbeddings, world: World) -> tuple[Path, ...]:
    """The files of the workspace that a judge's command names."""
    panel = request.panel
    folder = Path(panel.folder) if panel.folder else world.workspace.cwd
    paths = (folder / word for word in words_of(panel.settings.command))
    return tuple(
        path for path in paths if is_file(path) and real(path).is_relative_to(world.workspace.root)
    )
