"""The user's tree as it is, as one commit in a repository of ours."""
