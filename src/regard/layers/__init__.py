"""Parts used by two models or more. They take plain numbers and tensors, never settings.

Shape letters in names: B batch · T, Q, K positions (any, query, key) · S source positions · W width · H heads ·
D width of one head · V vocabulary · N tokens of a whole batch in one row.
"""
