"""What applications call."""
