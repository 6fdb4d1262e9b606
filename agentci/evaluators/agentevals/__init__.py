"""agentevals' evaluators: built-in metrics, and programs that read EvalInput."""
