"""Adding and completing inside of transactions, on the store of a test."""
