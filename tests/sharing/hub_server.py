"""A hub on loopback, for the real library to talk to: the part of the Hugging Face HTTP interface that pushing and
pulling a model takes. Large files go the way of Git LFS; the newer Xet transfer is not played.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_of_the_tests"
LARGE = (".safetensors", ".parquet")


class Hub:
    """What the server holds, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.private: dict[str, bool] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        self.commits: dict[str, list[str]] = {}
        self.blobs: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.not_known: list[str] = []
        self.refuses_with: int | None = None

    def answer(self, method: str, path: str, body: bytes, allowed: bool) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(f"{method} {path}")
        if self.refuses_with is not None:
            return self.refuses_with, {}, b'{"error": "the hub is being mended"}'
        for verbs, pattern, work in self.routes():
            found = re.fullmatch(pattern, path)
            if method in verbs.split() and found:
                if not allowed and (method != "GET" or self.private.get(found.groupdict().get("name", ""), False)):
                    return 401, {"X-Error-Code": "RepoNotFound"}, b'{"error": "Invalid username or password."}'
                return work(body=body, **found.groupdict())
        self.not_known.append(f"{method} {path}")
        return 404, {}, b"{}"

    def routes(self) -> list[tuple[str, str, Callable]]:
        name = r"(?P<name>[\w.-]+/[\w.-]+)"
        return [
            ("POST", "/api/repos/create", self.create),
            ("POST", "/api/validate-yaml", self.validate),
            ("POST", f"/api/models/{name}/preupload/main", self.preupload),
            ("POST", rf"/{name}\.git/info/lfs/objects/batch", self.batch),
            ("PUT", r"/blobs/(?P<oid>[0-9a-f]{64})", self.store),
            ("POST", f"/api/models/{name}/commit/main", self.commit),
            ("GET", f"/api/models/{name}(?:/revision/(?P<revision>[^/]+))?", self.info),
            ("GET", f"/api/models/{name}/tree/(?P<revision>[^/]+)", self.tree),
            ("GET HEAD", f"/{name}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", self.resolve),
        ]

    def create(self, body):
        said = json.loads(body)
        name = "/".join(filter(None, (said.get("organization"), said["name"])))
        if name in self.files:
            return self.json({"url": f"{self.url}/{name}"}, 409)
        self.private[name] = said.get("private") or said.get("visibility") == "private"
        self.files[name], self.commits[name] = {}, ["0" * 40]
        return self.json({"url": f"{self.url}/{name}"})

    def validate(self, body):
        header = json.loads(body)["content"].split("---\n")[1]
        assert isinstance(yaml.safe_load(header), dict)
        return self.json({"errors": [], "warnings": []})

    def preupload(self, name, body):
        assert name in self.files
        return self.json(
            {
                "files": [
                    {
                        "path": file["path"],
                        "shouldIgnore": False,
                        "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                    }
                    for file in json.loads(body)["files"]
                ]
            }
        )

    def batch(self, name, body):
        assert name in self.files
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.url}/blobs/{one['oid']}"}}}
            for one in json.loads(body)["objects"]
        ]
        return self.json({"transfer": "basic", "objects": objects})

    def store(self, oid, body):
        assert hashlib.sha256(body).hexdigest() == oid
        self.blobs[oid] = body
        return 200, {}, b""

    def commit(self, name, body):
        files = dict(self.files[name])
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            match line["key"]:
                case "header":
                    assert value["summary"]
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.blobs[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
                case other:
                    raise AssertionError(other)
        self.files[name] = files
        self.commits[name].append(hashlib.sha1(body).hexdigest())
        sha = self.commits[name][-1]
        return self.json({"success": True, "commitOid": sha, "commitUrl": f"{self.url}/{name}/commit/{sha}"})

    def info(self, name, revision, body):
        if name not in self.files:
            return 404, {"X-Error-Code": "RepoNotFound"}, b'{"error": "Repository not found"}'
        if revision not in (None, "main", *self.commits[name]):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b'{"error": "Invalid rev id"}'
        siblings = [{"rfilename": path} for path in self.files[name]]
        sha = self.commits[name][-1]
        return self.json({"id": name, "modelId": name, "sha": sha, "private": self.private[name], "siblings": siblings})

    def tree(self, name, revision, body):
        assert revision in ("main", *self.commits[name])
        found = []
        for path, content in self.files[name].items():
            oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            one = {"type": "file", "path": path, "size": len(content), "oid": oid}
            if path.endswith(LARGE):
                large = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
                one["lfs"] = large
            found.append(one)
        return self.json(found)

    def resolve(self, name, revision, path, body):
        assert revision in self.commits[name]
        content = self.files[name][path]
        tag = hashlib.sha256(content).hexdigest()
        return 200, {"X-Repo-Commit": self.commits[name][-1], "ETag": f'"{tag}"'}, content

    def json(self, content, code=200):
        return code, {"Content-Type": "application/json"}, json.dumps(content).encode()


@contextmanager
def hub_on_loopback() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def work(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}" or self.path.startswith("/blobs/")
            code, headers, content = hub.answer(self.command, unquote(urlsplit(self.path).path), body, allowed)
            self.send_response(code)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = work  # the names that http.server calls

        def log_message(self, *words) -> None:
            """Not to the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
