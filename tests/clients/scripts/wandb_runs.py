"""Writes runs with W&B, offline, below the folder `whole`, and copies them into `cut`, where a last log may end early.

In: a list of {"name", "id", "sessions", "cut"}. A session makes a folder of its run, and has defines, rows, config,
summary, code. A definition has the arguments of define_metric, and a row is [step or None, values].
Out: what both folders hold, as `wandb sync` reads it and tells a server: {folder: {name: [session]}}. There, a session
has rows, defines, config, code, a row is [step, time, values by name], and a definition the name or the glob.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import wandb

#: Bytes that hold the record of a run itself: W&B syncs nothing with a log without it.
BEGUN = 500
#: By the project and the id with which a session is synced, its history, configs and exit code.
told = defaultdict(lambda: {"history": {}, "configs": [], "code": None})


class Server(BaseHTTPRequestHandler):
    """Answers what `wandb sync` asks, and keeps what it is told."""

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.graphql(said) if self.path == "/graphql" else self.stream(said)
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def graphql(self, said):
        about = said["variables"]
        if said["operationName"] == "CreateRunFiles":
            return {"data": {"createRunFiles": {"runID": "", "uploadHeaders": [], "files": []}}}
        if said["operationName"] != "UpsertBucket":
            return {"data": {}}
        place = {"id": "", "name": about["project"], "entity": {"id": "", "name": "me"}}
        bucket = {"id": "", "name": about["name"], "displayName": about["name"], "config": "{}", "project": place}
        told[about["project"], about["name"]]["configs"].append(json.loads(about["config"]))
        return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}

    def stream(self, said):
        _, _, _, project, id, _ = self.path.split("/")
        history = said.get("files", {}).get("wandb-history.jsonl", {"offset": 0, "content": []})
        for number, line in enumerate(history["content"], history["offset"]):
            told[project, id]["history"][number] = json.loads(line)
        if said.get("complete"):
            told[project, id]["code"] = said["exitcode"]
        return {}

    def log_message(self, *_):
        pass


def write(run):
    folder = Path("whole", run["name"])
    folder.mkdir(parents=True)
    for number, session in enumerate(run["sessions"]):
        settings = wandb.Settings(
            mode="offline", silent=True, x_disable_stats=True, x_disable_meta=True, console="off", root_dir="written"
        )
        os.makedirs("written", exist_ok=True)
        made = wandb.init(
            project="models",
            name=run["name"],
            id=run["id"],
            resume="allow" if number else None,
            config=session["config"],
            settings=settings,
        )
        for name, step, sync in session["defines"]:
            made.define_metric(name, step_metric=step, step_sync=sync)
        for step, values in session["rows"]:
            made.log(values, step=step)
        made.summary.update(session["summary"])
        written = Path(made.dir).parent
        made.finish(exit_code=session["code"])
        written.rename(folder / f"offline-run-{number}-{run['id']}")


def cut(run):
    copy = shutil.copytree(Path("whole", run["name"]), Path("cut", run["name"]))
    if run["cut"] is not None:
        last = max(copy.glob("*/*.wandb"))
        os.truncate(last, max(BEGUN, int(run["cut"] * last.stat().st_size)))


def sync(url, folder, number):
    """Sync the sessions of a number, as a project of their own."""
    logs = sorted(map(str, Path(folder).glob(f"*/offline-run-{number}-*")))
    variables = {**os.environ, "WANDB_BASE_URL": url, "WANDB_API_KEY": "x" * 40}
    command = [sys.executable, "-m", "wandb", "sync", "--project", f"{folder}-{number}", *logs]
    subprocess.run(
        command, env=variables, capture_output=True
    )  # it fails for a log that is cut, behind all that it has


def session(folder, number, run):
    found = told[f"{folder}-{number}", run["id"]]
    config = {key: one["value"] for saved in found["configs"] for key, one in saved.items()}
    own = config.pop("_wandb")
    rows = []
    for _, values in sorted(found["history"].items()):
        step, time, _ = (values.pop(key, None) for key in ("_step", "_timestamp", "_runtime"))
        rows.append([step, time, dict(flat(values))])
    # The names of the fields of a definition are the numbers that its message has: 1 the name, 2 the glob.
    defines = [one.get("1") or one.get("2") for one in own["m"]]
    return {"rows": rows, "defines": defines, "config": config, "code": found["code"]}


def flat(items):
    for key, one in items.items():
        if isinstance(one, dict):
            yield from flat({f"{key}.{inner}": inside for inner, inside in one.items()})
        else:
            yield key, one


runs = json.load(sys.stdin)
for run in runs:
    write(run)
wandb.teardown()  # logs may be written behind the end of their runs, until then
for run in runs:
    cut(run)
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
Thread(target=server.serve_forever, daemon=True).start()
for folder in ("whole", "cut"):
    for number in range(max(len(run["sessions"]) for run in runs)):
        sync(f"http://127.0.0.1:{server.server_port}", folder, number)
found = {
    folder: {run["name"]: [session(folder, number, run) for number in range(len(run["sessions"]))] for run in runs}
    for folder in ("whole", "cut")
}
print(json.dumps(found))
