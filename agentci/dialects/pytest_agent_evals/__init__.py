"""The dialect of pytest-agent-evals: functions that grade, and prompts, over rows of a dataset."""
