"""Which models the graders of an entry ask: those of its ``judge``, or of the config's."""

from typing import Final

from agentci._util.text.suggest import one_of
from agentci.errors import InputError
from agentci.evaluators.context import Surroundings
from agentci.evaluators.judge_config import JudgeSpec, NobodyJudgesError
from agentci.evaluators.openai_eval.entries import OpenAIEvalEntry
from agentci.evaluators.openai_eval.model_grader_specs import ModelSpec, ScoreModel
from agentci.model.judging import ModelSettings, Panel, WantedPanel
from agentci.model.values import replace

# Whose graders these are, and so whose models they name.
PROVIDER: Final = "openai"
# Whose APIs have embeddings that we ask for.
EMBEDDING_PROVIDERS: Final = ("openai", "azure")


class Panels:
    """Who grades for an entry."""

    def __init__(self, entry: OpenAIEvalEntry, surroundings: Surroundings) -> None:
        self._entry = entry
        self._judges = surroundings.judges
        self._grader_place = surroundings.place_of("grader")
        self._place = surroundings.place_of("grader" if entry.judge is None else "judge")

    def panel(self, spec: ModelSpec) -> Panel:
        """Who grades by a prompt.

        Raises:
            InputError: nobody said which model.
        """
        fields = _asked_for(spec)
        if "model" in fields and self._names_no_service():
            fields["provider"] = PROVIDER
        own = {} if self._entry.judge is None else self._entry.judge.model_dump(exclude_none=True)
        return self._judges.panel(JudgeSpec.model_validate({**fields, **own}), self._place)

    def wanted(self, spec: ModelSpec) -> WantedPanel:
        """The same, to be there before anything is graded."""
        return WantedPanel(panel=self.panel(spec), name=self._entry.name, place=self._place)

    def for_embeddings(self) -> Panel:
        """The panel whose model makes vectors of texts.

        Raises:
            InputError: nobody said which model, or its provider has no such API.
        """
        # --judge-model is about models that judge.
        panel = (
            replace(self._judges, model="").panel(self._entry.judge, self._place)
            if any(each is not None and each.embedding_model for each in self._said())
            else None
        )
        if panel is None or not panel.settings.embedding_model:
            raise NobodyJudgesError.of(
                "cosine compares embeddings, and no `judge` says which model makes them",
                place=self._grader_place,
                hint="add `judge: {embedding_model: ...}`; or take `cosine_tf`, which compares "
                "counts of words, or `backend: remote`",
            )
        settings = panel.settings
        if settings.provider not in EMBEDDING_PROVIDERS:
            raise InputError.of(
                f"agentci asks the provider {settings.provider!r} for no embeddings",
                place=self._place,
                hint=f"give the entry a `judge` of its own; providers are "
                f"{one_of(EMBEDDING_PROVIDERS)}",
            )
        embedding = ModelSettings(
            provider=settings.provider,
            model=settings.embedding_model,
            base_url=settings.base_url,
            api_version=settings.api_version,
            key_variable=settings.key_variable,
            federation=settings.federation,
            output_tokens=0,
            prices=settings.prices,
        )
        return replace(panel, settings=embedding, samples=1)

    def wanted_for_embeddings(self) -> WantedPanel:
        """The same, to be there before anything is graded."""
        return WantedPanel(panel=self.for_embeddings(), name=self._entry.name, place=self._place)

    def _said(self) -> tuple[JudgeSpec | None, ...]:
        return (self._judges.shared, self._entry.judge)

    def _names_no_service(self) -> bool:
        return not self._judges.model and not any(
            each is not None and (each.provider or each.command) for each in self._said()
        )


def _asked_for(spec: ModelSpec) -> dict[str, object]:
    """What a grader says of its model, in the words of ``judge``."""
    sampling = spec.sampling_params if isinstance(spec, ScoreModel) else None
    fields = {
        "model": spec.model,
        "temperature": sampling and sampling.temperature,
        "effort": sampling and sampling.reasoning_effort,
        "max_output_tokens": sampling and sampling.max_completions_tokens,
    }
    return {name: value for name, value in fields.items() if value is not None}
