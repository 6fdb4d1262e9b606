LIMIT = 100


def is_sunny(sample, item):
    return float("sunny" in sample["output_text"])


def is_short(sample, item):
    return float(len(sample["output_text"]) < LIMIT)
