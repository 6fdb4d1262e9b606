"""The same in pytest: install agentci, then run ``pytest``."""

from graders import asks_before_refunding, keeps_to_the_policy, stays_brief

from agentci.pytest import CustomCodeEvaluatorConfig, EvaluatorResults, evals


@evals.dataset("answers.jsonl")
class TestAnswers:
    @evals.evaluator(CustomCodeEvaluatorConfig("brief", grader=stays_brief, threshold=0.9))
    def test_stays_brief(self, evaluator_results: EvaluatorResults):
        assert evaluator_results.brief.result == "pass"

    @evals.evaluator(CustomCodeEvaluatorConfig("policy", grader=keeps_to_the_policy, threshold=1.0))
    @evals.evaluator(CustomCodeEvaluatorConfig("asks", grader=asks_before_refunding, threshold=1.0))
    def test_keeps_to_the_rules(self, evaluator_results: EvaluatorResults):
        assert evaluator_results.policy.result == "pass", evaluator_results.policy.reason
        assert evaluator_results.asks.result == "pass"
