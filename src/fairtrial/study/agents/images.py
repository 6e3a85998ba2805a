"""Images in messages: files become parts that chat-completions endpoints take."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError

MAX_IMAGE_BYTES = 20_000_000
_ADDRESSES = ("https://", "http://", "data:")


def add_images(
    messages: Sequence[Mapping[str, Any]], images: Sequence[str | Path], folder: Path | None
) -> list[dict[str, Any]]:
    """Return messages with images added to the last one, after its text.

    images: paths of files, relative to `folder`, or addresses (`https://`, `data:`)

    Raises `StudyError` for a file that can't be read, is no image, or is too large.
    """
    added = [dict(message) for message in messages]
    if not images:
        return added
    content = added[-1].get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    added[-1]["content"] = [*parts, *(_part(str(image), folder) for image in images)]
    return added


def _part(image: str, folder: Path | None) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": _address(image, folder)}}


def _address(image: str, folder: Path | None) -> str:
    if image.startswith(_ADDRESSES):
        return image
    path = (folder or Path()) / Path(image).expanduser()
    kind = mimetypes.guess_type(path.name)[0] or ""
    if not kind.startswith("image/"):
        hint = "a file that ends in .png, .jpg, .gif or .webp, or an https:// address"
        raise StudyError(Mistake(("images",), f"{image} is no image", hint))
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"{path} can't be read: {error.strerror or error}"
        raise StudyError(Mistake(("images",), message)) from None
    if len(data) > MAX_IMAGE_BYTES:
        message = f"{path} has {len(data):,} bytes; at most {MAX_IMAGE_BYTES:,} are sent"
        raise StudyError(Mistake(("images",), message))
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def without_image_data(content: Any) -> Any:
    """Return a message's content with the data of images replaced by their digests."""
    if not isinstance(content, list):
        return content
    return [_without_data(part) for part in content]


def _without_data(part: Any) -> Any:
    address = part.get("image_url", {}) if isinstance(part, Mapping) else {}
    url = address.get("url", "") if isinstance(address, Mapping) else ""
    if not url.startswith("data:"):
        return part
    digest = hashlib.sha256(url.encode()).hexdigest()
    short = f"{url.partition(';')[0]};sha256={digest}"
    return {**part, "image_url": {**address, "url": short}}
