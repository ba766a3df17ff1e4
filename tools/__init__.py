"""Programs for those who work on Ropeway; nothing here is shipped."""
