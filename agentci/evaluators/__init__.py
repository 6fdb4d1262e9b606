"""Evaluator types: a case to a request, a response to a judgement."""
