"""The functions behind the routes, by topic; each file has its rows of the table."""
