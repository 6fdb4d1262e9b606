from attempts import CONFIG, attempt, report

for path in CONFIG["paths"]:
    attempt(path, lambda: open(path).read())
report()
