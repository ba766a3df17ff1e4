"""The contract between Ropeway and its stores: commands, answers, and from a URL to a store."""
