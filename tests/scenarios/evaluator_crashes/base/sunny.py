raise SystemExit("no model")
