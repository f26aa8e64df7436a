"""Token ids -> batches: length bucketing, padding, masking, prefetching."""
