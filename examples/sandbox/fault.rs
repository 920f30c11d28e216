use std::time::Duration;

use http::HeaderValue;
use oncekey::sandbox::Fault;

/// The longest body that a fault makes, and the longest stall.
const LARGEST: u64 = 64 * 1024 * 1024;
const LONGEST: u64 = 86_400_000;
/// How often one fault may be asked for.
const OFTEN: u64 = 1000;

/// Each fault's name, its arguments with what they are without being said, and
/// how it is made. Where the last one is `None` it must be said.
type Row = (&'static str, &'static [Argument], fn(&[u64]) -> Fault);
type Argument = (&'static str, Option<u64>, u64);

const BYTES: Argument = ("BYTES", Some(5), LARGEST);
const STATUS: Argument = ("STATUS", None, 999);

const FAULTS: &[Row] = &[
    ("none", &[], |_| Fault::none()),
    ("lose-answer", &[], |_| Fault::answer_lost()),
    ("answer-lost", &[], |_| Fault::answer_lost()),
    ("head-cut", &[BYTES], |n| Fault::head_cut(size(n[0]))),
    ("body-cut", &[BYTES], |n| Fault::body_cut(size(n[0]))),
    ("unframed-cut", &[BYTES], |n| Fault::unframed_cut(size(n[0]))),
    ("garbled-head", &[], |_| Fault::garbled_head()),
    ("drip", &[BYTES, ("MS", Some(10), LONGEST)], |n| Fault::drip(size(n[0]), Duration::from_millis(n[1]))),
    ("oversized", &[("BYTES", None, LARGEST)], |n| Fault::oversized(size(n[0]))),
    ("truncated-json", &[BYTES], |n| Fault::truncated_json(size(n[0]))),
    ("invalid-json", &[], |_| Fault::invalid_json()),
    ("closed-after-answer", &[], |_| Fault::closed_after_answer()),
    ("closed-before-reading", &[], |_| Fault::closed_before_reading()),
    ("reset-before-reading", &[], |_| Fault::reset_before_reading()),
    ("closed-without-executing", &[], |_| Fault::closed_without_executing()),
    ("reset-without-executing", &[], |_| Fault::reset_without_executing()),
    ("status", &[STATUS], |n| Fault::status(status(n[0]))),
    ("in-progress", &[], |_| Fault::in_progress()),
    ("replayed", &[STATUS], |n| Fault::replayed(status(n[0]))),
    ("html", &[("STATUS", Some(200), 999)], |n| Fault::html(status(n[0]))),
    ("redirect", &[("STATUS", Some(307), 999)], |n| Fault::redirect(status(n[0]), "/elsewhere")),
    ("stall", &[], |_| Fault::stall_after_executing()),
    ("stall-before-reading", &[], |_| Fault::stall_before_reading()),
    ("stall-before-executing", &[], |_| Fault::stall_before_executing()),
    ("stall-while-executing", &[], |_| Fault::stall_while_executing()),
    ("stall-after-executing", &[], |_| Fault::stall_after_executing()),
    ("stall-in-head", &[BYTES], |n| Fault::stall_in_head(size(n[0]))),
    ("stall-in-body", &[BYTES], |n| Fault::stall_in_body(size(n[0]))),
    ("duplicate", &[], |_| Fault::duplicate()),
    ("crash-before-executing", &[], |_| Fault::crash_before_executing()),
    ("crash-after-executing", &[], |_| Fault::crash_after_executing()),
    ("refused-stream", &[], |_| Fault::refused_stream()),
    ("goaway", &[("CODE", Some(0), u32::MAX as u64)], |n| Fault::goaway(u32::try_from(n[0]).unwrap_or(0))),
    ("black-hole", &[], |_| Fault::black_hole()),
];

const MODIFIERS: &str =
    "executing, from-handler, refused-by-handler, reset, chunked, unframed, marked, retry-after=VALUE, lasting=MS";

/// A fault, and for how many requests in a row.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) fault: Fault,
    pub(crate) times: usize,
}

impl From<Scripted> for Fault {
    fn from(scripted: Scripted) -> Self {
        scripted.fault.times(scripted.times)
    }
}

/// `NAME[:ARGUMENT...][:TIMES][,MODIFIER...]`: the fault's arguments first, then how often.
pub(crate) fn parse(text: &str) -> Result<Scripted, String> {
    let mut parts = text.split(',');
    let head = parts.next().unwrap_or_default();
    let mut words = head.split(':');
    let name = words.next().unwrap_or_default();
    let Some((_, arguments, make)) = FAULTS.iter().find(|row| row.0 == name) else {
        return Err(format!("no fault is called {name:?}; there are: {}", names()));
    };
    let mut values = Vec::new();
    for (what, default, most) in *arguments {
        let least = if *what == "STATUS" { 100 } else { 0 };
        values.push(match (words.next(), default) {
            (Some(word), _) => number(word, least, *most).map_err(|wrong| format!("{name}: {what} {wrong}"))?,
            (None, Some(default)) => *default,
            (None, None) => return Err(format!("{name} needs an argument; it is {}", usage(name, arguments))),
        });
    }
    let times = match words.next() {
        Some(word) => size(number(word, 1, OFTEN).map_err(|wrong| format!("{name}: TIMES {wrong}"))?),
        None => 1,
    };
    if let Some(word) = words.next() {
        return Err(format!("{name}: {word:?} is one too many; it is {}", usage(name, arguments)));
    }
    Ok(Scripted { fault: parts.try_fold(make(&values), modify)?, times })
}

fn modify(fault: Fault, text: &str) -> Result<Fault, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    Ok(match (name, value) {
        ("executing", None) => fault.executing(),
        ("from-handler", None) => fault.from_handler(),
        ("refused-by-handler", None) => fault.from_handler_without_executing(),
        ("reset", None) => fault.with_reset(),
        ("chunked", None) => fault.chunked(),
        ("unframed", None) => fault.unframed(),
        ("marked", None) => fault.with_replay_mark(),
        ("retry-after", Some(value)) if HeaderValue::from_str(value).is_ok() => fault.retry_after(value),
        ("lasting", Some(value)) => {
            let millis = number(value, 0, LONGEST).map_err(|wrong| format!("lasting: MS {wrong}"))?;
            fault.lasting(Duration::from_millis(millis))
        }
        _ => return Err(format!("no modifier is called {text:?}; there are: {MODIFIERS}")),
    })
}

fn number(word: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = word.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a number from {least} to {most}, not {word:?}"))
}

fn names() -> String {
    FAULTS.iter().map(|(name, arguments, _)| usage(name, arguments)).collect::<Vec<_>>().join(", ")
}

fn usage(name: &str, arguments: &[Argument]) -> String {
    let arguments = arguments.iter().map(|(what, default, _)| match default {
        Some(_) => format!("[:{what}]"),
        None => format!(":{what}"),
    });
    format!("{name}{}[:TIMES]", arguments.collect::<String>())
}

/// Within their limits, checked above.
fn status(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(500)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
