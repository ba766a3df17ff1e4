"""For tests, ours and yours: the suite that every store passes, an auditor, a model and small factories."""
