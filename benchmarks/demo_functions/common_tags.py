# ruff: noqa
"""Tags that several articles share, found by tests for membership in lists."""

from __future__ import annotations


class Tagged:
    """An article that holds its tags.

    tags: its tags
    """

    def __init__(self, tags: list[str]) -> None:
        self.tags = tags


def find_by_narrowing(articles: list[dict[str, list[str]]]) -> set[str]:
    """Keep the tags of the first article that each other one has, too."""
    if not articles:
        return set()
    common = articles[0]["tags"]
    for article in articles[1:]:
        common = [tag for tag in common if tag in article["tags"]]
    return set(common)


def find_by_loops(articles):
    """The same by nested loops."""
    if not articles:
        return []
    common = list(articles[0]["tags"])
    for article in articles[1:]:
        kept = []
        for tag in common:
            if tag in article["tags"] and tag not in kept:
                kept.append(tag)
        common = kept
    return common


def find_in_all(articles):
    """Ask every article for every tag."""
    common = []
    for tag in articles[0]["tags"] if articles else []:
        if all(tag in article["tags"] for article in articles) and tag not in common:
            common.append(tag)
    return common


def find_by_attribute(articles):
    """The same with objects that hold their tags."""
    articles = [Tagged(article["tags"]) for article in articles]
    common = []
    for one, other in zip(articles, articles[1:]):
        for tag in one.tags:
            if tag in other.tags:
                common.append(tag)
    return common
