"""A server as far as connections go: gRPC C-core for the connection service and an application, the
standard library for the two endpoints and the token.

Prints its ports as one line of JSON. Then each line of standard input is an object of settings to
change, and is answered by a line of what was counted. Ends with its standard input.
"""

import argparse
import json
import os
import sys
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

SETTINGS = {
    "interval": 1.0,  # seconds between keep-alives
    "silent": False,  # send none
    "evict": 5.0,  # seconds without an answer
    "check": "compatible",  # or "incompatible", "unimplemented"
    "descriptors": True,  # whether GetDescriptorSet is known
    "auth": False,  # whether a token is needed
    "token_status": 200,
    "token_size": 16,  # bytes
    "count": None,  # [status, content type, body] in place of a count
    "reserve": None,  # the same for a reservation
    "metadata": 0,  # bytes of metadata before each answer
    "delay": 0.0,  # seconds before an answer of the application
}

LOCK = threading.Lock()
CLIENTS = {}  # connection id -> when it was last seen
EPOCH = [0]  # streams of an earlier one end
PAYLOADS = {}  # what the application was called with -> how often
COUNTED = {}


def count(name):
    with LOCK:
        COUNTED[name] = COUNTED.get(name, 0) + 1


# Protobuf, as much as is needed: varints and strings.


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def string(field, text):
    data = text if isinstance(text, bytes) else text.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def fields(message):
    """Field number -> last value."""
    found, at = {}, 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            found[key >> 3] = number()
        elif key & 7 == 2:
            length = number()
            found[key >> 3] = message[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {key & 7}")
    return found


# The connection service.


def connect(request, context):
    client = fields(request)[1].decode()
    with LOCK:
        CLIENTS[client] = time.monotonic()
        epoch = EPOCH[0]
    try:
        while context.is_active() and epoch == EPOCH[0]:
            if not SETTINGS["silent"]:
                yield string(1, client)
            time.sleep(SETTINGS["interval"])
    finally:
        with LOCK:
            CLIENTS.pop(client, None)


def keep_alive(request, context):
    client = fields(request)[1].decode()
    with LOCK:
        if client in CLIENTS:
            CLIENTS[client] = time.monotonic()
    return b""


def evict():
    while True:
        time.sleep(0.2)
        with LOCK:
            oldest = time.monotonic() - SETTINGS["evict"]
            for client in [client for client, seen in CLIENTS.items() if seen < oldest]:
                del CLIENTS[client]


def check(request, context):
    versions = string(3, "18.0.0") + string(4, "18.0.0")
    if SETTINGS["check"] == "compatible":
        return varint(1 << 3) + varint(1) + versions
    return string(2, "MessageRemoved: .acme.Order") + versions


SCHEMA = """syntax = "proto3";
package Cratis.Chronicle.Contracts.Clients;
import "google/protobuf/empty.proto";

message ConnectRequest {
   string ConnectionId = 1;
   string ClientVersion = 2;
   bool IsRunningWithDebugger = 3;
}
message ConnectionKeepAlive {
   string ConnectionId = 1;
}
service ConnectionService {
   rpc Connect (ConnectRequest) returns (stream ConnectionKeepAlive);
   rpc ConnectionKeepAlive (ConnectionKeepAlive) returns (.google.protobuf.Empty);
}
"""


# An application.


def unary(request, context):
    with LOCK:
        PAYLOADS[request] = PAYLOADS.get(request, 0) + 1
    time.sleep(SETTINGS["delay"])
    return request


def stream(request, context):
    asked = fields(request)
    payload = string(1, b"x" * asked.get(2, 0))
    for _ in range(asked.get(1, 0)):
        yield payload
    while asked.get(3) and context.is_active():
        time.sleep(0.05)


def duplex(requests, context):
    yield from requests


def unauthenticated(request, context):
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "who is it?")


CONNECTIONS = "/Cratis.Chronicle.Contracts.Clients.ConnectionService/"
ECHO = "/chronicle.reference.Echo/"
one = grpc.unary_unary_rpc_method_handler
many = grpc.unary_stream_rpc_method_handler
METHODS = {
    CONNECTIONS + "Connect": many(connect),
    CONNECTIONS + "ConnectionKeepAlive": one(keep_alive),
    CONNECTIONS + "CheckCompatibility": one(check),
    CONNECTIONS + "GetDescriptorSet": one(lambda request, context: string(1, SCHEMA)),
    "/Cratis.Chronicle.Contracts.Host.Server/GetVersionInfo": one(
        lambda request, context: string(1, "15.8.0")
    ),
    ECHO + "Unary": one(unary),
    ECHO + "Stream": many(stream),
    ECHO + "Duplex": grpc.stream_stream_rpc_method_handler(duplex),
}
ANONYMOUS = {CONNECTIONS + "CheckCompatibility", CONNECTIONS + "GetDescriptorSet"}


class Service(grpc.GenericRpcHandler):
    def service(self, call):
        method = call.method
        count(method)
        if method == CONNECTIONS + "CheckCompatibility" and SETTINGS["check"] == "unimplemented":
            return None  # C-core says so
        if method == CONNECTIONS + "GetDescriptorSet" and not SETTINGS["descriptors"]:
            return None
        if SETTINGS["auth"] and method not in ANONYMOUS:
            given = dict(call.invocation_metadata).get("authorization")
            if given != "Bearer " + token():
                if METHODS[method].response_streaming:
                    return many(unauthenticated)
                return one(unauthenticated)
        return METHODS.get(method)


class Metadata(grpc.ServerInterceptor):
    """Puts as much metadata before each answer as is set."""

    def intercept_service(self, continuation, call):
        handler = continuation(call)
        size = SETTINGS["metadata"]
        if size == 0 or handler is None or not handler.unary_unary:
            return handler

        def answer(request, context):
            context.send_initial_metadata((("x-much", "m" * size),))
            return handler.unary_unary(request, context)

        return one(answer)


# The endpoints.


def token():
    return "t" * SETTINGS["token_size"]


class Endpoints(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/connections/count":
            count("count")
            self.answer(*(SETTINGS["count"] or [200, "application/json", str(len(CLIENTS))]))
        else:
            self.answer(404, "text/html", "<html>404</html>")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/connections/reserve":
            count("reserve")
            self.answer(*(SETTINGS["reserve"] or [200, "text/plain", ""]))
        elif self.path == "/connect/token":
            count("token")
            status = SETTINGS["token_status"]
            answer = {"error": "invalid_client"}
            if status == 200:
                answer = {"access_token": token(), "token_type": "Bearer", "expires_in": 3600}
            self.answer(status, "application/json", json.dumps(answer))
        else:
            self.answer(404, "text/html", "<html>404</html>")

    def answer(self, status, kind, body):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--core", type=int, default=0, help="port of gRPC, plain")
    parser.add_argument("--secure", type=int, default=0, help="port of gRPC, with TLS")
    parser.add_argument("--http", type=int, default=0, help="port of the endpoints")
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--options", type=json.loads, default={}, help="of C-core")
    arguments = parser.parse_args()
    SETTINGS.update(arguments.settings)

    options = {"grpc.so_reuseport": 0, **arguments.options}
    pool = futures.ThreadPoolExecutor(max_workers=400)
    server = grpc.server(pool, [Service()], [Metadata()], list(options.items()))
    with open(arguments.certificate, "rb") as certificate, open(arguments.key, "rb") as key:
        credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
    core = server.add_insecure_port(f"127.0.0.1:{arguments.core}")
    secure = server.add_secure_port(f"127.0.0.1:{arguments.secure}", credentials)
    server.start()
    endpoints = ThreadingHTTPServer(("127.0.0.1", arguments.http), Endpoints)
    for work in [endpoints.serve_forever, evict]:
        threading.Thread(target=work, daemon=True).start()
    say({"core": core, "secure": secure, "http": endpoints.server_address[1]})

    for line in sys.stdin:
        change = json.loads(line)
        if change.pop("end_streams", False):
            EPOCH[0] += 1
        if "stop" in change:
            server.stop(change.pop("stop"))
        SETTINGS.update(change)
        with LOCK:
            twice = sum(1 for times in PAYLOADS.values() if times > 1)
            say({"clients": list(CLIENTS), "calls": COUNTED, "twice": twice})
    os._exit(0)  # whatever is under way


def say(what):
    print(json.dumps(what), flush=True)


main()
