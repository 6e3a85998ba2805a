"""Comment on a pull request of GitHub, in one comment that is updated in place; for action.yml.

    TOKEN=... TITLE=problem.yaml python tools/comment.py fairtrial.md

GitHub's own variables say where: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH. A token that
may not comment, as in pull requests from forks, is no error: the job's summary has the text, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PER_PAGE = 100
MOST_PAGES = 30
TIMEOUT_S = 30.0


def main() -> int:
    """Write the comment; return the exit code."""
    try:
        body = Path(sys.argv[1]).read_text("utf-8")
    except FileNotFoundError:
        print("::notice::fairtrial wrote no comment, since nothing was judged")
        return 0
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    title = hashlib.sha256(os.environ.get("TITLE", "").encode()).hexdigest()[:16]
    marker = f"<!-- fairtrial {title} -->"
    try:
        _write(event["pull_request"]["number"], marker, f"{marker}\n{body}")
    except urllib.error.HTTPError as error:
        if error.code not in {401, 403, 404}:
            raise
        print(f"::notice::the token may not comment here ({error.code}); see the job's summary")
    return 0


def _write(number: int, marker: str, body: str) -> None:
    """Update the comment with this marker, or make one."""
    comments = f"issues/{number}/comments"
    for page in range(1, MOST_PAGES + 1):
        found = _call("GET", f"{comments}?per_page={PER_PAGE}&page={page}")
        for comment in found:
            # People can write the marker, too; their comments are not ours to change.
            is_bot = comment["user"]["type"] == "Bot"
            if is_bot and comment["body"].startswith(marker):
                _call("PATCH", f"issues/comments/{comment['id']}", {"body": body})
                return
        if len(found) < PER_PAGE:
            break
    _call("POST", comments, {"body": body})


def _call(method: str, path: str, data: dict[str, str] | None = None) -> Any:
    url = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}"
    request = urllib.request.Request(
        url,
        None if data is None else json.dumps(data).encode(),
        {
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return json.load(reply)


if __name__ == "__main__":
    sys.exit(main())
