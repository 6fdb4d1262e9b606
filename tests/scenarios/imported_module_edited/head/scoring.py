def score(given):
    return 1.0 if given["invocations"] else 0.0
