//! Every answer of `vectors.json`, read by its preset and folded by the engine.

use std::process::Command;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use oncekey::engine::{
    Advice, AttemptKind, Draw, Effect, Entry, History, KeyOrigin, MethodKind, Policy, Reach, Time, Verdict, Why,
};
use oncekey::profile::{Answer, Asked, Exchange, Extent, Profile};
use serde_json::Value;

pub(crate) const KEY: &str = "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506";

/// Whether an earlier attempt of the operation is in doubt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Earlier {
    Nothing,
    Doubt,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Sent {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
    extent: Extent,
}

impl Sent {
    fn answer(&self) -> Answer<'_> {
        Answer::new(self.status, &self.headers, self.body.as_bytes()).with_extent(self.extent)
    }

    pub(crate) fn read_by(&self, profile: &Profile) -> Verdict {
        let asked = HeaderMap::new();
        let asked = Asked::new(&Method::POST, &asked).with_key(Some(KEY));
        profile.read(&asked, &Exchange::Answered(self.answer()))
    }
}

/// The answer of a row of `vectors.json` or `strangers.json`.
pub(crate) fn sent(row: &Value) -> Sent {
    let body = text(&row["body"]);
    let mut headers = HeaderMap::new();
    for line in row["headers"].as_array().unwrap() {
        let name: HeaderName = line[0].as_str().unwrap().parse().unwrap();
        headers.append(name, line[1].as_str().unwrap().replace("{key}", KEY).parse().unwrap());
    }
    headers.insert(CONTENT_LENGTH, body.len().into());
    let status = StatusCode::from_u16(u16::try_from(row["status"].as_u64().unwrap()).unwrap()).unwrap();
    let extent = if row["extent"] == "cut" { Extent::Cut } else { Extent::Whole };
    Sent { status, headers, body, extent }
}

/// One answer, and what the page by hand says it means.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) preset: String,
    pub(crate) name: String,
    sent: Sent,
    pub(crate) reach: String,
    pub(crate) advice: String,
    why: Option<String>,
    effects: [String; 2],
    marked: bool,
    original: Option<String>,
}

pub(crate) fn all() -> Vec<Vector> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    rows.iter().map(Vector::parse).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl Vector {
    fn parse(row: &Value) -> Self {
        Self {
            preset: text(&row["preset"]),
            name: text(&row["answer"]),
            sent: sent(row),
            reach: text(&row["reach"]),
            advice: text(&row["advice"]),
            why: row["why"].as_str().map(str::to_owned),
            effects: [text(&row["effect"]["none"]), text(&row["effect"]["doubt"])],
            marked: row["marked"].as_bool().unwrap(),
            original: row["original"].as_str().map(str::to_owned),
        }
    }

    pub(crate) fn effect(&self, earlier: Earlier) -> &str {
        match earlier {
            Earlier::Nothing => &self.effects[0],
            Earlier::Doubt => &self.effects[1],
        }
    }

    pub(crate) fn answer(&self) -> Answer<'_> {
        self.sent.answer()
    }

    pub(crate) fn read_by(&self, profile: &Profile) -> Verdict {
        self.sent.read_by(profile)
    }
}

pub(crate) fn reach(verdict: &Verdict) -> &'static str {
    match verdict.reach() {
        Reach::Refused => "Refused",
        Reach::Ambiguous => "Ambiguous",
        Reach::Accepted { knows_key: true } => "InProgress",
        Reach::Accepted { knows_key: false } => "Accepted",
        Reach::AppliedUnread => "AppliedUnread",
        Reach::Applied => "Applied",
        Reach::Rejected => "Rejected",
        other => panic!("{other:?} is no reach of an answer"),
    }
}

pub(crate) fn advice(verdict: &Verdict) -> &'static str {
    match verdict.advice() {
        Advice::Stop => "Stop",
        _ => "Retry",
    }
}

/// What the engine says of an operation with a drawn key whose attempt ended
/// so, be it the first or the second after a timeout.
pub(crate) fn effect(verdict: Verdict, earlier: Earlier) -> Effect {
    let at = Time::from_millis(1_000_000_000_000);
    let created = Entry::Created { at, key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    let mut history = History::replay(&[created]).unwrap();
    let policy = Policy::new();
    let timeout = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    let before = match earlier {
        Earlier::Nothing => None,
        Earlier::Doubt => Some(timeout),
    };
    for (index, verdict) in before.into_iter().chain([verdict]).enumerate() {
        let attempt = u32::try_from(index + 1).unwrap();
        let timeout = Duration::from_secs(1);
        history.apply(&Entry::Started { attempt, kind: AttemptKind::First, timeout, at }).unwrap();
        let ended = history.ended(verdict, &policy, at, Draw::Entropy(0));
        history.apply(&ended).unwrap();
    }
    history.effect()
}

pub(crate) fn preset(id: &str) -> Profile {
    Profile::presets().into_iter().find(|profile| profile.id() == id).unwrap_or_else(|| panic!("no preset {id}"))
}

#[test]
fn every_vector_is_read_as_it_was_written_down() {
    let mut wrong = Vec::new();
    for vector in all() {
        let profile = preset(&vector.preset);
        let verdict = vector.read_by(&profile);
        let why = vector.why.as_deref().is_none_or(|why| format!("{:?}", verdict.why()) == why);
        let read = (reach(&verdict), advice(&verdict), verdict.marked());
        let original = profile.original_id(&vector.answer());
        let effects = [Earlier::Nothing, Earlier::Doubt].map(|earlier| format!("{:?}", effect(verdict, earlier)));
        let as_written = read == (vector.reach.as_str(), vector.advice.as_str(), vector.marked);
        if !(as_written && why && original == vector.original && effects == vector.effects) {
            let Vector { preset, name, .. } = &vector;
            wrong.push(format!("{preset}, {name}: {verdict:?}, {effects:?}, original {original:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} answers:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_enough_and_of_every_preset() {
    let vectors = all();
    assert!(2 * vectors.len() >= 250, "{}", vectors.len());
    for profile in Profile::presets() {
        let of_it = vectors.iter().filter(|vector| vector.preset == profile.id());
        assert!(of_it.count() > 20, "{}", profile.id());
    }
    assert_eq!(Profile::presets().len(), 28);
}

/// Where Python is at hand: the file is what the script makes.
#[test]
fn the_vectors_are_what_the_script_makes() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/profiles/make_vectors.py");
    let Ok(output) = Command::new("python3").args([script, "--check"]).output() else {
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
