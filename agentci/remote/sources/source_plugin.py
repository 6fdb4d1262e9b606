"""Sources of other packages, held to what every source is: their faults are told as theirs."""

from collections.abc import Sequence
from typing import Any, TypeVar

from agentci._util.once import Once
from agentci.errors import AgentciError, UnreachableError
from agentci.model.program import Listing, ProgramFile, RemoteProgram, Snapshot
from agentci.remote.sources.contents import Tally, snapshot_of
from agentci.remote.sources.source import MakeSource, Surroundings

T = TypeVar("T")


class ForeignSource:
    """A source that another package makes; it is made when it is first asked for something.

    Args:
        title: how messages call it.
    """

    def __init__(self, make: MakeSource, surroundings: Surroundings, *, title: str) -> None:
        self._make = make
        self._surroundings = surroundings
        self._title = title
        self._made: Once[str, object] = Once()

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """See :class:`Source`."""
        return self._ask("complete", RemoteProgram, program)

    def resolve(self, program: RemoteProgram) -> str:
        """See :class:`Source`."""
        return self._ask("resolve", str, program)

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """See :class:`Source`."""
        answer = self._call("pin", program, commit)
        return None if answer is None else self._checked(answer, str, "pin")

    def fetch(self, program: RemoteProgram, commit: str, *, paths: Sequence[str]) -> Snapshot:
        """See :class:`Source`; what comes is held to the limits and the rules for names."""
        snapshot = self._ask("fetch", Snapshot, program, commit, paths=paths)
        tally = Tally()
        for path, file in snapshot.files.items():
            if type(path) is not str or type(file) is not ProgramFile:
                raise self._fault("it fetched something that is no file")
            tally.add(path, len(file.content))
        if snapshot.entry not in snapshot.files:
            raise self._fault("it fetched a folder without the program")
        return snapshot_of(snapshot.entry, snapshot.files)

    def catalogue(self) -> Sequence[Listing]:
        """See :class:`Source`."""
        listings = self._call("catalogue")
        if not isinstance(listings, Sequence) or not all(
            type(each) is Listing for each in listings
        ):
            raise self._fault("its catalogue is no sequence of listings")
        return listings

    def _ask(self, method: str, wanted: type[T], *given: Any, **named: Any) -> T:
        return self._checked(self._call(method, *given, **named), wanted, method)

    def _call(self, method: str, *given: Any, **named: Any) -> object:
        try:
            source = self._made.answer("", lambda: self._make(self._surroundings))
            answer: object = getattr(source, method)(*given, **named)
        except AgentciError:
            raise
        except Exception as error:
            raise self._fault(f"{type(error).__name__}: {error}") from error
        return answer

    def _checked(self, answer: object, wanted: type[T], method: str) -> T:
        if not isinstance(answer, wanted):
            raise self._fault(f"`{method}` gave a {type(answer).__name__}, not a {wanted.__name__}")
        return answer

    def _fault(self, what: str) -> UnreachableError:
        message = f"{self._title} does not work: {what}"
        return UnreachableError(message, hint="tell the authors of that package")
