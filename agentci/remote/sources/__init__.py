"""Where remote evaluators are fetched from."""
