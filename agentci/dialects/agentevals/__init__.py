"""The agentevals dialect: golden cases, built-in metrics, the stdin and stdout protocol."""
