"""A stand-in for llama-server as a process: its interface and counters, times that it makes up.

usage: python stand_in_engine.py --port N [--draft D] [--share P] [--delay S] [--fail-after N]
       [--break COMMAND]
"""

import argparse
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


class State:
    """Counters since the start."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.lock = threading.Lock()
        self.requests = self.drafts = self.drafted = self.accepted = self.tokens = 0
        self.by_position = [0] * flags.draft

    def generate(self, tokens: int) -> dict[str, float]:
        """Rounds until the tokens are there; D = 4 accepts 3 of 4, longer drafts no more."""
        flags, left, cost, drafted, accepted = self.flags, tokens - 1, 0.0, 0, 0
        with self.lock:
            turn = 0
            while left > 0:
                turn += 1
                if flags.draft and turn % 10 < 10 * flags.share:
                    got = min(3, flags.draft, left - 1) if left > 1 else 0
                    self.drafts += 1
                    drafted += flags.draft
                    accepted += got
                    for k in range(got):
                        self.by_position[k] += 1
                    cost += 1.2 + 0.12 * flags.draft
                    left -= got + 1
                else:
                    cost += 1.0
                    left -= 1
            self.requests += 1
            self.drafted += drafted
            self.accepted += accepted
            self.tokens += tokens
            wobble = 1.0 + 0.01 * (self.requests % 3)
        timings = {"predicted_n": tokens, "predicted_ms": 20.0 * cost * wobble}
        if drafted:
            timings |= {"draft_n": drafted, "draft_n_accepted": accepted}
        return timings

    def metrics(self) -> str:
        """The page in Prometheus' text form."""
        lines = [
            f"llamacpp:spec_decode_num_drafts_total {self.drafts}",
            f"llamacpp:spec_decode_num_draft_tokens_total {self.drafted}",
            f"llamacpp:spec_decode_num_accepted_tokens_total {self.accepted}",
            f"llamacpp:tokens_predicted_total {self.tokens}",
            "llamacpp:requests_processing 0",
            "llamacpp:requests_deferred 0",
        ]
        name = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"
        lines += [f'{name}{{position="{k}"}} {n}' for k, n in enumerate(self.by_position)]
        return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    """llama-server's paths."""

    state: State

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        models = {"data": [{"id": "stand-in", "owned_by": "llamacpp"}]}
        pages = {
            "/health": '{"status": "ok"}',
            "/v1/models": json.dumps(models),
            "/props": '{"build_info": "b1-standin"}',
            "/metrics": self.state.metrics(),
        }
        self._send(pages.get(self.path, "{}"), 200 if self.path in pages else 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        flags = self.state.flags
        if flags.fail_after is not None and self.state.requests >= flags.fail_after:
            self._send('{"error": "out of memory"}', 500)
            return
        time.sleep(flags.delay)
        tokens = int(body["max_tokens"])
        timings = self.state.generate(tokens)
        text = " ".join(WORDS[k % len(WORDS)] for k in range(tokens))
        choice = {"delta": {"content": text}, "finish_reason": "length"}
        usage = {"prompt_tokens": 7, "completion_tokens": tokens}
        last = {"choices": [], "usage": usage, "timings": timings}
        events = [{"choices": [choice]}, last]
        stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        self._send(stream + "data: [DONE]\n\n", 200, "text/event-stream")

    def _send(self, text: str, status: int, kind: str = "application/json") -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--draft", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--fail-after", type=int)
    parser.add_argument("--refuse", action="store_true")
    flags = parser.parse_args()
    if flags.refuse:
        sys.exit("unknown setting")
    Handler.state = State(flags)
    ThreadingHTTPServer(("127.0.0.1", flags.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
