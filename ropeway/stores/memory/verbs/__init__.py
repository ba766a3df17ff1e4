"""What each verb of the contract does to the books, one file for each or for a few alike.

All of them run inside a `Step`: they change jobs at once, and raise whatever they like.
"""
