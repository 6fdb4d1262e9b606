def knows_the_truth(sample, item):
    return float(item["truth"] in sample["output_text"])
