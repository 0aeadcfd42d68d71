"""Computes the signatures of dumped requests anew, with the vendor's own library.

    check_sigv4.py ACCESS_KEY SECRET_KEY FOLDER [SESSION_TOKEN]

Reads every NNNNN.head.json of FOLDER, with the body NNNNN.json beside it, and prints one JSON list with an entry per
request: its file, "ok", "mismatch" or "unsigned", and for a mismatch both signatures and the canonical request.
"""

import json
import pathlib
import sys

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

PREFIX = "AWS4-HMAC-SHA256 "


def check(head_file, credentials):
    head = json.loads(head_file.read_text())
    body = head_file.with_name(head_file.name.replace(".head.json", ".json")).read_bytes()
    headers = dict(head["headers"])
    entry = {"file": head_file.name, "path": head["path"]}
    authorization = headers.get("authorization", "")
    if not authorization.startswith(PREFIX):
        return entry | {"result": "unsigned"}
    fields = dict(field.strip().split("=", 1) for field in authorization[len(PREFIX) :].split(","))
    access_key, _, region, service, _ = fields["Credential"].split("/")
    signed = fields["SignedHeaders"].split(";")
    missing = [name for name in signed if name not in headers]
    if missing or access_key != credentials.access_key:
        why = f"signed headers that did not come: {missing}" if missing else f"another access key: {access_key}"
        return entry | {"result": "mismatch", "why": why}
    query = "?" + head["query"] if head["query"] else ""
    request = AWSRequest(
        method=head["method"],
        url=f"http://{headers['host']}{head['path']}{query}",
        data=body,
        headers={name: headers[name] for name in signed},
    )
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(credentials, service, region)
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    if signature == fields["Signature"]:
        return entry | {"result": "ok"}
    return entry | {
        "result": "mismatch",
        "expected": signature,
        "given": fields["Signature"],
        "canonical_request": canonical,
    }


if __name__ == "__main__":
    access_key, secret_key, folder, *token = sys.argv[1:]
    credentials = Credentials(access_key, secret_key, *token)
    heads = sorted(pathlib.Path(folder).glob("*.head.json"))
    print(json.dumps([check(head, credentials) for head in heads]))
