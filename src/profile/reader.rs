use std::cell::OnceCell;

use http::header::{HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE};
use http::{Method, StatusCode};
use serde_json::Value;

use super::answer::{Answer, Asked, Exchange, Extent, Judgement};
use super::builder::{ErrorsStored, Meaning};
use super::json::{self, Scalar};
use super::{Data, matcher};
use crate::engine::{Advice, MethodKind, Reach, Verdict, Why};

/// What an attempt showed. Rules 2 and 3 read a failure, the table reads an answer.
pub(super) fn read(profile: &Data, asked: &Asked<'_>, exchange: &Exchange<'_>) -> Verdict {
    match exchange {
        Exchange::Unsent { hopeless: true } => Verdict::new(Reach::Unsent, Advice::Stop, Why::NotSent),
        Exchange::Unsent { hopeless: false } => Verdict::new(Reach::Unsent, Advice::Retry, Why::NotSent),
        Exchange::NoHead => Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead),
        Exchange::Answered(answer) => {
            let case = Case::new(profile, asked, answer);
            let verdict = RULES.iter().find_map(|rule| {
                let verdict = (rule.read)(&case)?;
                Some(if rule.heeds_header { case.heed_header(verdict) } else { verdict })
            });
            let verdict = verdict.unwrap_or_else(|| case.heed_header(IN_DOUBT)).with_mark(case.marked);
            answer.heeded(verdict)
        }
    }
}

struct Rule {
    /// Rule 7: whether the server's should-retry header may change the advice.
    heeds_header: bool,
    read: fn(&Case<'_>) -> Option<Verdict>,
}

/// The id of the original that an answer names, by the rule that reads it.
pub(super) fn original_id(profile: &Data, answer: &Answer<'_>) -> Option<String> {
    if answer.extent != Extent::Whole {
        return None;
    }
    let headers = HeaderMap::new();
    // Whatever it was, it had a key: without one nothing was processed before.
    let asked = Asked::new(&Method::POST, &headers).with_key(Some(""));
    let case = Case::new(profile, &asked, answer);
    let rule = profile.rules.iter().find(|rule| case.matches(&rule.pattern))?;
    let ids = rule.original.as_ref()?.scalars(case.parsed()?);
    let (first, rest) = ids.split_first()?;
    // Of two different ones neither can be told to be ours.
    let one = !first.as_str().is_empty() && rest.iter().all(|id| id.as_str() == first.as_str());
    one.then(|| first.as_str().to_owned())
}

/// The order is the meaning: each rule relies on those above it having passed.
const RULES: [Rule; 16] = [
    Rule { heeds_header: false, read: rule_4_redirect },
    Rule { heeds_header: false, read: rule_5_error_cut },
    Rule { heeds_header: false, read: rule_6_idempotency_layer },
    Rule { heeds_header: true, read: rule_8_page_for_data },
    Rule { heeds_header: false, read: rule_9_pending_or_judged },
    Rule { heeds_header: true, read: rule_10_success_unread },
    Rule { heeds_header: false, read: rule_11_success },
    Rule { heeds_header: true, read: rule_12_replayed_server_error },
    Rule { heeds_header: false, read: rule_13_replayed_refusal },
    Rule { heeds_header: false, read: rule_14_settling_refusal },
    Rule { heeds_header: true, read: rule_15_unauthorized },
    Rule { heeds_header: false, read: rule_15b_gone_is_done },
    Rule { heeds_header: true, read: rule_16_refusal },
    Rule { heeds_header: true, read: rule_17_conflict },
    Rule { heeds_header: true, read: rule_18_try_later },
    Rule { heeds_header: true, read: rule_19_server_error },
];

/// Rule 20: anything else.
const IN_DOUBT: Verdict = Verdict::new(Reach::Ambiguous, Advice::Stop, Why::Other);

struct Case<'a> {
    profile: &'a Data,
    asked: &'a Asked<'a>,
    answer: &'a Answer<'a>,
    status: u16,
    marked: bool,
    parsed: OnceCell<Option<Value>>,
}

impl<'a> Case<'a> {
    fn new(profile: &'a Data, asked: &'a Asked<'a>, answer: &'a Answer<'a>) -> Self {
        let marked = profile.is_marked(asked, answer.headers);
        Self { profile, asked, answer, status: answer.status.as_u16(), marked, parsed: OnceCell::new() }
    }

    const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    const fn is_client_error(&self) -> bool {
        self.status >= 400 && self.status < 500
    }

    const fn is_server_error(&self) -> bool {
        self.status >= 500 && self.status < 600
    }

    /// A page came where data was asked for.
    fn is_page(&self) -> bool {
        self.answer.is_html() && (self.asked.wants_json() || !self.asked.wants_html())
    }

    /// Such an answer has no content (RFC 9110, 9.3.2, 15.3.5, 15.3.6).
    fn has_no_content(&self) -> bool {
        *self.asked.method == Method::HEAD || matches!(self.status, 204 | 205)
    }

    /// A 2xx of which nothing is missing, as far as can be told.
    fn is_complete(&self) -> bool {
        self.has_no_content()
            || (self.answer.extent == Extent::Whole
                && self.answer.is_what_it_says()
                && (self.status != 206 || self.asked.names(&RANGE)))
    }

    fn parsed(&self) -> Option<&Value> {
        self.parsed.get_or_init(|| json::parse(self.answer.body)).as_ref()
    }

    fn matches(&self, pattern: &matcher::Compiled) -> bool {
        pattern.matches(&matcher::Seen {
            status: self.answer.status,
            headers: self.answer.headers,
            body: self.answer.body,
            parsed: self.parsed(),
            is_page: self.is_page(),
            sent_key: self.asked.key,
            places: &self.profile.code_paths,
        })
    }

    /// Rule 7.
    fn heed_header(&self, verdict: Verdict) -> Verdict {
        let keyless_post = self.asked.key.is_none() && self.asked.kind() == MethodKind::Other;
        let Some(name) = self.profile.should_retry.as_ref().filter(|_| !keyless_post) else {
            return verdict;
        };
        if matcher::has_value(self.answer.headers, name, b"true") {
            return verdict.with_advice(Advice::Retry);
        }
        if matcher::has_value(self.answer.headers, name, b"false") {
            // Fresh credentials are not tried against the server's word either.
            let why = if verdict.why() == Why::Unauthorized { Why::Refusal } else { verdict.why() };
            return verdict.with_advice(Advice::Stop).with_why(why);
        }
        verdict
    }
}

const fn retry(reach: Reach, why: Why) -> Option<Verdict> {
    Some(Verdict::new(reach, Advice::Retry, why))
}

const fn stop(reach: Reach, why: Why) -> Option<Verdict> {
    Some(Verdict::new(reach, Advice::Stop, why))
}

const DONE: Option<Verdict> = stop(Reach::Applied, Why::Success);

fn rule_4_redirect(case: &Case<'_>) -> Option<Verdict> {
    match case.status {
        304 if is_conditional(case.asked) => DONE,
        101 | 207 | 300..=399 => stop(Reach::Ambiguous, Why::Redirect),
        _ => None,
    }
}

/// RFC 9110, 13.1: 304 answers a GET or HEAD that named what it has.
fn is_conditional(asked: &Asked<'_>) -> bool {
    matches!(*asked.method, Method::GET | Method::HEAD)
        && (asked.names(&IF_NONE_MATCH) || asked.names(&IF_MODIFIED_SINCE))
}

fn rule_5_error_cut(case: &Case<'_>) -> Option<Verdict> {
    if !(case.is_client_error() || case.is_server_error()) {
        return None;
    }
    match case.answer.extent {
        Extent::Whole if !case.has_no_content() && case.answer.is_cut_json() => retry(Reach::Ambiguous, Why::CutBody),
        Extent::Whole => None,
        Extent::Cut => retry(Reach::Ambiguous, Why::CutBody),
        Extent::TooLarge => stop(Reach::Ambiguous, Why::TooLarge),
    }
}

fn rule_6_idempotency_layer(case: &Case<'_>) -> Option<Verdict> {
    if case.is_success() && !case.profile.rules_on_success {
        return None;
    }
    let rule = case.profile.rules.iter().find(|rule| case.matches(&rule.pattern))?;
    match rule.meaning {
        Meaning::InProgress => retry(Reach::Accepted { knows_key: case.asked.key.is_some() }, Why::InProgress),
        Meaning::KeyReused => stop(Reach::Ambiguous, Why::KeyReused),
        // The engine weakens it, but for the first attempt of a drawn key.
        Meaning::KeyReusedForCertain => stop(Reach::Refused, Why::KeyReused),
        Meaning::AlreadyProcessed => stop(Reach::Ambiguous, Why::AlreadyProcessed),
        Meaning::StoredFailure => stop(Reach::Ambiguous, Why::StoredError),
        Meaning::KeyExpired | Meaning::NotToBeRetried => stop(Reach::Ambiguous, Why::Other),
    }
}

fn rule_8_page_for_data(case: &Case<'_>) -> Option<Verdict> {
    // What is proved to hold nothing is no page; what merely ended may have been cut.
    let came = !case.answer.is_proved_empty();
    if case.is_success() && came && !case.has_no_content() && case.is_page() {
        return retry(Reach::Ambiguous, Why::WrongType);
    }
    None
}

fn rule_9_pending_or_judged(case: &Case<'_>) -> Option<Verdict> {
    if !case.is_success() {
        return None;
    }
    let judged = match &case.profile.judge {
        Some(judge) if case.is_complete() => Some(judge(case.answer)),
        Some(_) | None => None,
    };
    match judged {
        Some(Judgement::Final) => None,
        // Rule 9b.
        Some(Judgement::Refused) if case.marked => stop(Reach::Rejected, Why::Refusal),
        Some(Judgement::Refused) => stop(Reach::Refused, Why::Refusal),
        Some(Judgement::Unclear) => stop(Reach::Ambiguous, Why::Other),
        Some(Judgement::Pending) => pending(case),
        None if case.status == StatusCode::ACCEPTED.as_u16() => pending(case),
        None => None,
    }
}

fn pending(case: &Case<'_>) -> Option<Verdict> {
    // The engine adds what earlier answers showed, and stops where nothing did.
    let knows_key = case.marked || (case.profile.promises_keys && case.asked.key.is_some());
    retry(Reach::Accepted { knows_key }, Why::Pending)
}

fn rule_10_success_unread(case: &Case<'_>) -> Option<Verdict> {
    if !case.is_success() || case.is_complete() {
        return None;
    }
    // What a judge would have said of the whole answer is not known.
    let reach = match case.profile.judge {
        Some(_) => Reach::Accepted { knows_key: false },
        None => Reach::AppliedUnread,
    };
    match case.answer.extent {
        Extent::TooLarge => stop(reach, Why::TooLarge),
        Extent::Whole | Extent::Cut => retry(reach, Why::CutBody),
    }
}

fn rule_11_success(case: &Case<'_>) -> Option<Verdict> {
    if case.is_success() { DONE } else { None }
}

fn rule_12_replayed_server_error(case: &Case<'_>) -> Option<Verdict> {
    if !case.is_server_error() || !case.marked {
        return None;
    }
    match case.profile.errors_stored {
        ErrorsStored::Never => retry(Reach::Accepted { knows_key: true }, Why::StoredError),
        ErrorsStored::Always | ErrorsStored::Unsaid => stop(Reach::Ambiguous, Why::StoredError),
    }
}

fn rule_13_replayed_refusal(case: &Case<'_>) -> Option<Verdict> {
    if !case.is_client_error() || !case.marked || matches!(case.status, 408 | 409 | 423 | 425 | 429) {
        return None;
    }
    match case.profile.errors_stored {
        // It cannot be what it says it is.
        ErrorsStored::Never => stop(Reach::Ambiguous, Why::StoredError),
        ErrorsStored::Always | ErrorsStored::Unsaid => stop(Reach::Rejected, Why::Refusal),
    }
}

fn rule_14_settling_refusal(case: &Case<'_>) -> Option<Verdict> {
    // Nothing of the idempotency layer speaks of a request without a key.
    if case.asked.key.is_some() && case.profile.settles.iter().any(|pattern| case.matches(pattern)) {
        return stop(Reach::Rejected, Why::Refusal);
    }
    None
}

fn rule_15_unauthorized(case: &Case<'_>) -> Option<Verdict> {
    // The engine lets it be tried once more where a hook can bring fresh credentials.
    if case.status == 401 { stop(Reach::Refused, Why::Unauthorized) } else { None }
}

fn rule_15b_gone_is_done(case: &Case<'_>) -> Option<Verdict> {
    if *case.asked.method == Method::DELETE && case.asked.gone_is_done && matches!(case.status, 404 | 410) {
        return DONE;
    }
    None
}

fn rule_16_refusal(case: &Case<'_>) -> Option<Verdict> {
    match case.status {
        403 | 409 if case.is_page() => stop(Reach::Ambiguous, Why::WrongType),
        400 | 401 | 402 | 403 | 404 | 405 | 407 | 410 | 411 | 412 | 413 | 414 | 415 | 417 | 422 | 431 => {
            // Whether the idempotency layer said it, the rules above could not tell.
            let may_be_its = case.asked.key.is_some() && case.answer.hides_its_codes();
            stop(if may_be_its { Reach::Ambiguous } else { Reach::Refused }, Why::Refusal)
        }
        _ => None,
    }
}

/// Parts of codes that may speak of an earlier attempt of ours, whatever
/// separates their words.
const OF_AN_EARLIER_ONE: [&str; 15] = [
    "idempot",
    "dup",
    "exist",
    "already",
    "conflict",
    "inuse",
    "used",
    "reus",
    "progress",
    "process",
    "pending",
    "concurren",
    "lock",
    "busy",
    "flight",
];

fn rule_17_conflict(case: &Case<'_>) -> Option<Verdict> {
    if case.status != 409 {
        return None;
    }
    let found = |parsed| case.profile.code_paths.iter().flat_map(move |path| path.scalars(parsed));
    let mut codes = case.parsed().into_iter().flat_map(found).peekable();
    if codes.peek().is_some() && codes.all(|code| names_another_cause(&code)) {
        return stop(Reach::Refused, Why::Conflict);
    }
    stop(Reach::Ambiguous, Why::Conflict)
}

/// An ASCII identifier that cannot speak of an earlier attempt of ours.
fn names_another_cause(code: &Scalar) -> bool {
    let Scalar::Text(code) = code else {
        return false;
    };
    let identifier = code.len() <= 128
        && code.starts_with(|first: char| first.is_ascii_alphabetic())
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    let code: String = code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    identifier && !OF_AN_EARLIER_ONE.iter().any(|part| code.contains(part))
}

fn rule_18_try_later(case: &Case<'_>) -> Option<Verdict> {
    match case.status {
        429 if case.profile.limits_before_work => retry(Reach::Refused, Why::RateLimited),
        429 => retry(Reach::Ambiguous, Why::RateLimited),
        408 | 423 | 425 => retry(Reach::Ambiguous, Why::Other),
        _ => None,
    }
}

fn rule_19_server_error(case: &Case<'_>) -> Option<Verdict> {
    if case.is_server_error() { retry(Reach::Ambiguous, Why::ServerError) } else { None }
}
