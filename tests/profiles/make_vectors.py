#!/usr/bin/env python3
"""Makes vectors.json: answers of every preset's provider, and what each means;
and strangers.json: those of the providers that have none.

    python3 tests/profiles/make_vectors.py           writes it anew
    python3 tests/profiles/make_vectors.py --check   fails when it is stale

What an answer means is written down here, by hand, before anything reads it.
The answers of the idempotency layer are built from facts.json, which is what
was found on the providers' pages; nothing is computed by the crate.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
FACTS = {fact["name"]: fact for fact in json.loads((HERE / "facts.json").read_text())}

# A meaning: reach, advice, why (None: not looked at), and the effect of an
# operation of which this is the only attempt, or the second after a timeout.
READINGS = {
    "carried-out": ("Applied", "Stop", "Success", "Applied", "Applied"),
    "unread": ("AppliedUnread", "Retry", "CutBody", "Applied", "Applied"),
    "in-progress": ("InProgress", "Retry", "InProgress", "Unknown", "Unknown"),
    "pending": ("Accepted", "Retry", "Pending", "Unknown", "Unknown"),
    "refused": ("Refused", "Stop", None, "NotApplied", "Unknown"),
    "refused-again": ("Refused", "Retry", None, "NotApplied", "Unknown"),
    "reused": ("Ambiguous", "Stop", "KeyReused", "Unknown", "Unknown"),
    "reused-for-certain": ("Refused", "Stop", "KeyReused", "NotApplied", "Unknown"),
    "already": ("Ambiguous", "Stop", "AlreadyProcessed", "Unknown", "Unknown"),
    "stored": ("Ambiguous", "Stop", "StoredError", "Unknown", "Unknown"),
    "released": ("InProgress", "Retry", "StoredError", "Unknown", "Unknown"),
    "not-again": ("Ambiguous", "Stop", "Other", "Unknown", "Unknown"),
    "bound": ("Rejected", "Stop", "Refusal", "NotApplied", "NotApplied"),
    "doubt-again": ("Ambiguous", "Retry", None, "Unknown", "Unknown"),
    "doubt-stop": ("Ambiguous", "Stop", None, "Unknown", "Unknown"),
}

JSON = ["content-type", "application/json"]
HTML = ["content-type", "text/html; charset=utf-8"]
PAGE = "<!doctype html><p>Try again later</p>"
PAID = '{"id":"pay_1","amount":4999}'
KEY = "{key}"  # the key that was sent


def answer(status, body="", headers=None, extent="whole"):
    if headers is None:
        headers = [JSON] if body else []
    return {"status": status, "headers": headers, "body": body, "extent": extent}


# What any API may answer, and what it means where the profile knows nothing better.
COMMON = {
    "created": (answer(201, PAID), "carried-out"),
    "ok": (answer(200, PAID), "carried-out"),
    "no content": (answer(204), "carried-out"),
    "cut success": (answer(201, '{"id":"pa', extent="cut"), "unread"),
    "accepted": (answer(202, PAID), "pending"),
    "page instead of data": (answer(200, PAGE, [HTML]), "doubt-again"),
    "redirect": (answer(302, "", [["location", "/login"]]), "doubt-stop"),
    "invalid": (answer(400, '{"code":"AMOUNT_INVALID"}'), "refused"),
    "unauthorized": (answer(401, '{"code":"BAD_TOKEN"}'), "refused"),
    "declined": (answer(402, '{"error":{"code":"card_declined"}}'), "refused"),
    "forbidden by a gateway": (answer(403, PAGE, [HTML]), "doubt-stop"),
    "unprocessable": (answer(422, '{"errors":[{"code":"REFERENCE_MISSING"}]}'), "refused"),
    "conflict in prose": (answer(409, '{"message":"not now"}'), "doubt-stop"),
    "conflict of another kind": (answer(409, '{"code":"OUT_OF_FUNDS"}'), "refused"),
    "conflict of a gateway": (answer(409, PAGE, [HTML]), "doubt-stop"),
    "cut conflict": (answer(409, '{"code":"', extent="cut"), "doubt-again"),
    "locked": (answer(423, '{"message":"locked"}'), "doubt-again"),
    "limited": (answer(429, '{"message":"slow down"}', [JSON, ["retry-after", "2"]]), "doubt-again"),
    "server error": (answer(500, '{"message":"oops"}'), "doubt-again"),
    "unavailable": (answer(503, PAGE, [HTML]), "doubt-again"),
    "teapot": (answer(418), "doubt-stop"),
}

# Where a provider's pages give one of these another meaning.
BUSY_409 = {"conflict in prose": "in-progress", "conflict of another kind": "in-progress"}
SEEN_409 = {"conflict in prose": "already", "conflict of another kind": "already"}
OTHERWISE = {
    "adyen": {"limited": "not-again", "server error": "not-again", "unavailable": "not-again"},
    "checkout": BUSY_409,
    "dwolla": BUSY_409,
    "idempotent-api": BUSY_409,
    "memo-bank": BUSY_409,
    "modern-treasury": BUSY_409,
    "mollie": BUSY_409,
    "moov": SEEN_409,
}

# A preset's id, and its entry in facts.json.
PRESETS = {
    "generic": None,
    "verifika": "Verifika (baseline)",
    "ietf-06": "IETF draft-ietf-httpapi-idempotency-key-header-06",
    "stripe-v1": "Stripe API v1",
    "stripe-v2": "Stripe API v2",
    "toss": "Toss Payments",
    "adyen": "Adyen",
    "gocardless": "GoCardless",
    "mollie": "Mollie",
    "checkout": "Checkout.com",
    "mangopay": "Mangopay",
    "mercado-pago-orders": "Mercado Pago Orders API (/v1/orders)",
    "paypal-orders-v2": "PayPal Orders v2",
    "increase": "Increase",
    "moov": "Moov",
    "modern-treasury": "Modern Treasury",
    "dwolla": "Dwolla",
    "open-banking-uk": "Open Banking UK (OBIE R/W v3.1.x - v4.0)",
    "open-finance-brasil": "Open Finance Brasil (payments)",
    "paymongo": "PayMongo (money movement)",
    "memo-bank": "Memo Bank",
    "blindpay": "BlindPay",
    "node-idempotency": "node-idempotency (express/fastify/nest)",
    "express-idempotency": "express-idempotency",
    "asgi-idempotency-header": "asgi-idempotency-header (FastAPI/Starlette)",
    "idempotent-api": "IdempotentAPI (.NET)",
    "fiber": "gofiber idempotency middleware (Go)",
    "laravel-idempotency": "square1/laravel-idempotency",
}

OTHER_PAYPAL = "PayPal other REST APIs (Payments v2, Payouts, Vault, Subscriptions, Payments v1)"


def nested(path, value):
    """The body that holds a value at a path like `errors[].code`."""
    for part in reversed(path.split(".")):
        name = part.removesuffix("[]")
        value = {name: [value] if part.endswith("[]") else value}
    return value


def signal(provider, kind, index=0, at=None, headers=(), also=None, status=None):
    """An answer of the idempotency layer, as the provider's facts print it."""
    fact = FACTS[provider][kind][index]
    status = status or fact["status"]
    if fact.get("value") is None:
        return answer(status)
    body = nested(fact.get("body_field_path") or at, fact["value"])
    body.update(also or {})
    return answer(status, json.dumps(body, separators=(",", ":")), [JSON, *map(list, headers)])


def mark(provider):
    header = FACTS[provider]["replay_header"]
    return [header["name"].lower(), header["value"]]


def replays(provider, *, refusals, errors):
    """Replays with the provider's mark: a success, a refusal, a server's error."""
    line = mark(provider)
    yield "replayed success", answer(201, PAID, [JSON, line]), "carried-out", {"marked": True}
    yield "replayed refusal", answer(422, '{"code":"AMOUNT_INVALID"}', [JSON, line]), refusals, {"marked": True}
    yield "replayed server error", answer(500, "{}", [JSON, line]), errors, {"marked": True}


def own(preset, name):
    """The answers that the preset's provider gives in words of its own."""
    marked = {"marked": True}
    if preset == "generic":
        for status in [400, 409, 422, 423, 425, 429]:
            yield f"in progress with {status}", answer(status, '{"code":"IDEMPOTENCY_IN_PROGRESS"}'), "in-progress"
        for path in ["error.code", "error", "errors[].code", "[].code".removeprefix("[].")]:
            body = json.dumps(nested(path, "idempotency_key_reused"))
            yield f"key reused at {path}", answer(422, body), "reused"
        for header in ["idempotent-replay", "idempotent-replayed", "idempotency-replayed"]:
            yield f"{header}: 1", answer(402, "{}", [JSON, [header, "1"]]), "bound", marked
            yield f"{header}: no", answer(402, "{}", [JSON, [header, "no"]]), "refused"
        for path in ["code", "error.type", "type", "Type", "name", "status_code", "details[].issue"]:
            yield f"seen before, at {path}", answer(422, json.dumps(nested(path, "duplicate_request"))), "already"
        yield "key missing", answer(400, '{"message":"The Idempotency-Key header is required"}'), "refused"
        yield "key malformed", answer(422, '{"code":"INVALID_IDEMPOTENCY_KEY"}'), "refused"
        yield "key mismatched, in a code", answer(400, '{"code":"IDEMPOTENCY_BODY_MISMATCH"}'), "not-again"
        yield "seen before, in prose", answer(400, '{"message":"IdempotencyKey k was already used"}'), "not-again"
    elif preset == "verifika":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key reused", signal(name, "key_reused"), "reused-for-certain"
        yield from replays(name, refusals="stored", errors="released")
    elif preset == "ietf-06":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key reused", signal(name, "key_reused"), "reused"
    elif preset == "stripe-v1":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key reused", signal(name, "key_reused"), "reused"
        yield from replays(name, refusals="bound", errors="stored")
        says = "stripe-should-retry"
        yield "a 500 that says no", answer(500, "{}", [JSON, [says, "false"]]), "doubt-stop"
        yield "a 400 that says yes", answer(400, "{}", [JSON, [says, "true"]]), "refused-again"
        yield "a 409 that says yes", answer(409, "{}", [JSON, [says, "true"]]), "doubt-again"
        yield "a lock that timed out", answer(429, '{"error":{"code":"lock_timeout"}}'), "doubt-again"
    elif preset == "stripe-v2":
        says = "stripe-should-retry"
        yield "a 500 that says no", answer(500, "{}", [JSON, [says, "false"]]), "doubt-stop"
        yield "a 400 that says yes", answer(400, "{}", [JSON, [says, "true"]]), "refused-again"
        yield "a 503 that says yes", answer(503, "{}", [JSON, [says, "true"]]), "doubt-again"
        yield "success with today's state", answer(200, '{"id":"pay_1","status":"settled"}'), "carried-out"
    elif preset == "toss":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key too long", answer(400, '{"code":"INVALID_IDEMPOTENCY_KEY"}'), "refused"
    elif preset == "adyen":
        yes, no = ["transient-error", "true"], ["transient-error", "false"]
        for index, status in [(0, 422), (1, 409)]:
            yield f"in progress with {status}", signal(name, "in_progress", index, headers=[yes]), "in-progress"
            yield f"704 with {status} and no word", signal(name, "in_progress", index), "already"
            yield f"704 with {status} and false", signal(name, "in_progress", index, headers=[no]), "already"
        store_down = '{"errorCode":"703"}'
        yield "store down for now", answer(503, store_down, [JSON, yes]), "doubt-again"
        yield "store down", answer(503, store_down, [JSON, no]), "doubt-stop"
        yield "a 500 for now", answer(500, "{}", [JSON, yes]), "doubt-again"
        yield "key echoed in a success", answer(200, PAID, [JSON, ["idempotency-key", KEY]]), "carried-out"
        yield "key echoed in a refusal", answer(422, "{}", [JSON, ["idempotency-key", KEY]]), "refused"
    elif preset == "gocardless":
        reused = signal(name, "key_reused")
        yield "already processed, no id", reused, "already"
        body = json.loads(reused["body"])
        body["error"]["errors"][0]["links"] = {"conflicting_resource_id": "PM000123"}
        assert FACTS[name]["duplicate_id_path"] == "error.errors[].links.conflicting_resource_id"
        yield "already processed", answer(409, json.dumps(body)), "already", {"original": "PM000123"}
        state = '{"error":{"type":"invalid_state","code":409,"errors":[{"reason":"mandate_is_inactive"}]}}'
        yield "a state of the resource", answer(409, state), "doubt-stop"
    elif preset == "mollie":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key reused", signal(name, "key_reused"), "refused"
        yield from replays(name, refusals="bound", errors="stored")
    elif preset == "checkout":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "in progress on older accounts", signal(name, "in_progress", 1), "doubt-again"
        yield "duplicate of a processed payment", answer(202, PAID), "pending"
    elif preset == "mangopay":
        yield "already answered", signal(name, "key_reused"), "already"
        yield "already answered, with more", signal(name, "key_reused", also={"Message": "A", "Id": "b"}), "already"
    elif preset == "mercado-pago-orders":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key used", signal(name, "key_reused"), "reused"
        yield "in progress, elsewhere", answer(423, '{"code":"resource_locked"}'), "in-progress"
        yield "use a new key", answer(500, '{"errors":[{"code":"idempotency_validation_failed"}]}'), "not-again"
        yield "state of an order", answer(409, '{"errors":[{"code":"cannot_refund_order"}]}'), "refused"
        yield "refunded before", answer(409, '{"errors":[{"code":"order_already_refunded"}]}'), "doubt-stop"
        yield "failed", answer(402, '{"errors":[{"code":"failed"}]}'), "refused"
    elif preset == "paypal-orders-v2":
        yield "in progress", signal(name, "in_progress", also={"name": "RESOURCE_CONFLICT"}), "in-progress"
        yield "key used", signal(OTHER_PAYPAL, "key_reused"), "reused"
        yield "duplicate id", signal(OTHER_PAYPAL, "key_reused", 1, status=400), "reused"
        yield "key missing", answer(400, '{"details":[{"issue":"PAYPAL_REQUEST_ID_REQUIRED"}]}'), "refused"
        yield "declined in words", answer(422, '{"details":[{"issue":"INSTRUMENT_DECLINED"}]}'), "refused"
        yield "latest status", answer(200, '{"id":"5O1","status":"COMPLETED"}'), "carried-out"
    elif preset == "increase":
        yield "key used", signal(name, "key_reused", also={"resource_id": "account_1"}), "reused"
        yield from replays(name, refusals="bound", errors="stored")
    elif preset == "moov":
        yield "already processed", signal(name, "key_reused"), "already"
        said = '{"error":"transfer was previously created with that key"}'
        yield "already processed, in prose", answer(409, said), "already"
    elif preset in ("modern-treasury", "dwolla"):
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "replayed success", answer(201, PAID), "carried-out"
    elif preset == "open-banking-uk":
        yield "current status", answer(201, '{"Data":{"Status":"AcceptedSettlementCompleted"}}'), "carried-out"
        yield "key too long", answer(400, '{"Code":"400 BadRequest"}'), "refused"
        yield "asked too soon", answer(429, "", [["retry-after", "1"]]), "doubt-again"
    elif preset == "open-finance-brasil":
        yield "key reused", signal(name, "key_reused"), "reused"
        yield "uninformed", signal(name, "key_reused", 1), "refused"
        jwt = answer(422, "eyJhbGciOiJQUzI1NiJ9.e30.c2ln", [["content-type", "application/jwt"]])
        yield "refusal in a JWT", jwt, "refused"
        yield "another organisation's key", answer(403, "{}"), "refused"
    elif preset == "paymongo":
        for path in ["code", "errors[].code"]:
            yield f"in progress at {path}", signal(name, "in_progress", at=path), "in-progress"
    elif preset == "memo-bank":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key reused", signal(name, "key_reused"), "refused"
        yield from replays(name, refusals="bound", errors="stored")
    elif preset == "blindpay":
        yield "in progress", signal(name, "in_progress", at="code", headers=[("retry-after", "3")]), "in-progress"
        yield "in progress, elsewhere", signal(name, "in_progress", at="error.code"), "in-progress"
        yield "key reused", signal(name, "key_reused", at="error"), "reused"
    elif preset == "node-idempotency":
        yield "in progress", signal(name, "in_progress", at="code", headers=[("retry-after", "1")]), "in-progress"
        yield "key reused", signal(name, "key_reused", at="code"), "reused"
        yield "key too long", answer(400, '{"code":"IDEMPOTENCY_KEY_LEN_EXEEDED"}'), "refused"
        yield from replays(name, refusals="bound", errors="stored")
    elif preset == "express-idempotency":
        yield "in progress", signal(name, "in_progress", at="message"), "in-progress"
        said = FACTS[name]["in_progress"][0]["value"]
        page = answer(409, f"<!DOCTYPE html><pre>{said}</pre>", [HTML])
        yield "in progress, on a page", page, "in-progress"
        yield "key reused", signal(name, "key_reused", at="message"), "reused"
        yield "expectation failed", answer(417, '{"message":"Expect: 100-continue"}'), "refused"
        yield "key echoed in a first success", answer(201, PAID, [JSON, mark_of_key(name)]), "carried-out"
        yield "key echoed in a first refusal", answer(422, "{}", [JSON, mark_of_key(name)]), "refused"
    elif preset == "asgi-idempotency-header":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "not a UUID", answer(422, '{"detail":"\'Idempotency-Key\' header value must be formatted as a v4 UUID"}'), "refused"
        yield from replays(name, refusals="bound", errors="stored")
    elif preset == "idempotent-api":
        yield "in progress", signal(name, "in_progress"), "in-progress"
        yield "key reused", signal(name, "key_reused", at="message"), "reused"
    elif preset == "fiber":
        yield "replayed success", answer(200, PAID), "carried-out"
        yield "replayed refusal, unmarked", answer(422, '{"code":"AMOUNT_INVALID"}'), "refused"
    elif preset == "laravel-idempotency":
        yield "replayed success", answer(201, PAID, [JSON, mark_of_key(name)]), "carried-out", marked
        yield "replayed refusal", answer(422, "{}", [JSON, mark_of_key(name)]), "bound", marked
        yield "replayed server error", answer(500, "{}", [JSON, mark_of_key(name)]), "stored", marked
        yield "another key relayed", answer(422, "{}", [JSON, ["idempotency-relayed", "other"]]), "refused"
        yield "the wait was too long", answer(500, '{"message":"LockWaitExceededException"}'), "doubt-again"


def mark_of_key(provider):
    header = FACTS[provider]["replay_header"]
    assert "key" in header["value"], header
    return [header["name"].lower(), KEY]


def vectors():
    for preset, name in PRESETS.items():
        rows = [(what, sent, OTHERWISE.get(preset, {}).get(what, meaning)) for what, (sent, meaning) in COMMON.items()]
        for what, sent, meaning, *rest in [*rows, *own(preset, name)]:
            reach, advice, why, clean, doubt = READINGS[meaning]
            yield {
                "preset": preset,
                "answer": what,
                **sent,
                "meaning": meaning,
                "reach": reach,
                "advice": advice,
                "why": why,
                "effect": {"none": clean, "doubt": doubt},
                "marked": False,
                "original": None,
                **(rest[0] if rest else {}),
            }


# What may be concluded, without a preset, from a stranger's answer: of an only
# attempt, and of the second after a timeout. A key that is said to have come
# with another request says that this one was not carried out; where the same is
# said of a plain repetition, it says nothing.
MAY_CONCLUDE = {
    "in progress": (["Unknown"], ["Unknown"]),
    "key reused": (["NotApplied", "Unknown"], ["Unknown"]),
    "already processed": (["Unknown"], ["Unknown"]),
}

# Where a page prints no status.
GUESSED_STATUS = {"in_progress": 409, "key_reused": 400}


def strangers():
    """The signals of every provider that has no preset."""
    known = {*PRESETS.values(), OTHER_PAYPAL}
    for name, fact in FACTS.items():
        if name in known:
            continue
        for kind in ["in_progress", "key_reused"]:
            for index, entry in enumerate(fact.get(kind, [])):
                # "error_with_id", "error_no_id", ...: a plain repetition gets it too.
                repeated = (fact.get("on_completed_duplicate") or "").startswith("error")
                says = "in progress" if kind == "in_progress" else "already processed" if repeated else "key reused"
                path = (entry.get("body_field_path") or "code").replace("<mutation>", "inventoryAdjustQuantities")
                status = entry["status"] or GUESSED_STATUS[kind]
                if path.startswith("paymentService/"):
                    sent = answer(200, "<error code=\"9\"><![CDATA[Request in progress]]></error>", [["content-type", "text/xml"]])
                elif entry.get("value") is None:
                    sent = answer(status)
                else:
                    sent = answer(status, json.dumps(nested(path, entry["value"]), ensure_ascii=False))
                clean, doubt = MAY_CONCLUDE[says]
                yield {"provider": name, "says": says, **sent, "may": {"none": clean, "doubt": doubt}}


def written(rows):
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main():
    made = {"vectors.json": written(vectors()), "strangers.json": written(strangers())}
    if "--check" in sys.argv:
        stale = [name for name, text in made.items() if (HERE / name).read_text() != text]
        sys.exit(f"stale: {stale}" if stale else 0)
    for name, text in made.items():
        (HERE / name).write_text(text)
        print(f"{name}: {text.count(chr(10)) - 2} answers, each with and without an earlier doubt")


if __name__ == "__main__":
    main()
