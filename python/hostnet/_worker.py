"""A worker process: runs the points that arrive on standard input, one JSON line for those of one simulation.

The worker stores every result before it reports the result, so that no point is lost whatever happens to the parent.
Replies on standard output: {"progress"}, {"done"} or {"error", "kind"}.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import TextIO

from . import _core
from .cache import Cache
from .errors import failure


def serve(requests: Iterable[str], replies: TextIO) -> None:
    """Answer requests until the stream ends."""

    def reply(**message: object) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    def on_progress(fraction: float) -> None:
        reply(progress=fraction)

    for line in requests:
        task = json.loads(line)
        try:
            points, pcap = task["points"], task.get("pcap")
            specs = list(points.values())
            if pcap is None:
                texts = _core.run_each(specs, on_progress, task["keep"])
            else:
                texts = [_core.run(s, on_progress, pcap) for s in specs]
            for key, text in zip(points, texts, strict=True):
                Cache(task["cache"]).put(key, text)
        except BrokenPipeError:
            return
        except BaseException as e:
            reply(**failure(e))
        else:
            reply(done=list(points))


def follow(parent: int, seconds: float = 1.0) -> None:
    """Ends this process after `parent` has ended. A run that makes no progress writes nothing, and so would not notice
    the end of the parent."""
    while os.getppid() == parent:
        time.sleep(seconds)
    os._exit(1)


def main() -> None:
    threading.Thread(target=follow, args=(os.getppid(),), daemon=True).start()
    # Replies get a separate descriptor, so that no accidental output can corrupt them.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.stdin, replies)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)


if __name__ == "__main__":
    main()
