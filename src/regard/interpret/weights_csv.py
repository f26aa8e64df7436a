"""All weights of a trace as a table, for a spreadsheet or another program."""

import csv
import io

from regard.interpret.trace import Trace

COLUMNS = ("kind", "layer", "head", "query_number", "query", "key_number", "key", "weight")


def weights_csv(trace: Trace) -> str:
    """One weight in a line, token by token as the model has them; everything is counted from 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for shown in trace.maps:
        queries = list(enumerate((token.text for token in trace.rows[shown.queries].tokens), 1))
        keys = list(enumerate((token.text for token in trace.rows[shown.keys].tokens), 1))
        for head, weights_QK in enumerate(shown.weights_HQK.tolist(), 1):
            for query, weights_K in zip(queries, weights_QK, strict=True):
                for key, weight in zip(keys, weights_K, strict=True):
                    writer.writerow((shown.kind, shown.layer + 1, head, *query, *key, f"{weight:.6g}"))
    return text.getvalue()
