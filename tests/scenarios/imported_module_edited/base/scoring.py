def score(given):
    return 0.5 if given["invocations"] else 0.0
