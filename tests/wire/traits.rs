//! What the types of the public surface promise by their auto traits, as
//! reqwest's own do: a field that takes one away is a breaking change.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::time::Duration;

use oncekey::*;

fn goes<T: Debug + Send + Unpin>() {}
fn shared<T: Debug + Send + Sync + Unpin>() {}
fn value<T: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}

/// Calls the function for each type, and gives their names.
macro_rules! each {
    ($check:ident: $($type:ty),+ $(,)?) => {{
        $($check::<$type>();)+
        vec![$(stringify!($type)),+]
    }};
}

/// The names of all public types.
fn checked() -> BTreeSet<String> {
    let mut names = Vec::new();
    names.extend(each!(goes:
        ClientBuilder, blocking::ClientBuilder,
    ));
    names.extend(each!(shared:
        BuildError, Client, Ended<'static>, Error, Event<'static>, Profile, RequestBuilder, Response,
        profile::ProfileBuilder, sandbox::Sandbox, sandbox::SandboxBuilder, blocking::Client,
        blocking::RequestBuilder, blocking::Resume, blocking::ResumeAll, blocking::Resuming, Resume, ResumeAll,
        Resuming, journal::JournalError, journal::Sqlite, journal::SqliteBuilder,
    ));
    names.extend(each!(value:
        Attempt, AttemptEnded<'static>, AttemptStarted<'static>, BodyError, Doubtful<'static>, Effect, ErrorKind,
        Failure, Found, HeaderRefused, IdempotencyKey, OperationId, Parts<'static>, Poll, Replay, Retry,
        Table<'static>, WaitReason, Waiting<'static>, engine::Action, engine::Advice, engine::Again,
        engine::AttemptKind, engine::Budget, engine::Draw, engine::Entry, engine::History, engine::IllegalEntry,
        engine::KeyOrigin, engine::MethodKind, engine::Outcome, engine::Owner, engine::Policy, engine::Reach,
        engine::StopReason, engine::Time, engine::Verdict, engine::Why, profile::Answer<'static>,
        profile::Asked<'static>, profile::ErrorsStored, profile::Exchange<'static>, profile::Extent,
        profile::Judgement, profile::KeyError, profile::KeyFormat, profile::Matcher, profile::Meaning,
        profile::ProfileError, sandbox::Execution, sandbox::Fault, sandbox::SeenRequest, testing::Report,
        OperationRecord, RecordState, journal::Append, journal::Durability, journal::Fingerprint, journal::Identity,
        journal::JournalErrorKind, journal::Memory, journal::NewOperation, journal::Scope, journal::Status,
        journal::Stored, journal::StoredAnswer, journal::StoredBody, journal::StoredRequest,
        profile::ProfileFileError,
    ));
    let bare = |name: &str| name.split('<').next().unwrap().rsplit("::").next().unwrap().trim().to_owned();
    names.into_iter().map(bare).collect()
}

/// The names after `pub struct` and `pub enum` in a folder, `driver.rs` apart,
/// which is not for others.
fn declared(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared(&path, names);
        } else if !path.ends_with("driver.rs") {
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let name = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "));
                names.extend(name.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()));
            }
        }
    }
}

#[test]
fn every_public_type_goes_between_threads() {
    let mut all = BTreeSet::new();
    declared(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    assert_eq!(checked(), all, "a new type belongs into the list above");
}

#[test]
fn every_call_goes_between_threads() {
    fn goes<T: Send>(_: &T) {}
    let client = crate::client();
    goes(&client.get("http://127.0.0.1:1/").send());
    goes(&client.unfinished());
    goes(&client.in_doubt());
    goes(&client.lookup("order-7"));
    goes(&client.resume("order-7").send());
    goes(&client.resume_all().start());
    goes(&client.resolve("order-7", Effect::Applied, "ana", "pay_7"));
    goes(&client.abandon("order-7"));
    goes(&journal::Sqlite::open("payments.db"));
    goes(&journal::Sqlite::create("payments.db"));
    goes(&journal::Sqlite::open_or_create("payments.db"));
    let _ = |open: &journal::Sqlite, pool| {
        goes(&journal::Sqlite::from_pool(pool));
        goes(&open.prune(Duration::ZERO));
        goes(&open.close());
    };
    let _ = |mut ends: Resuming| goes(&ends.next());
    goes(&sandbox::Sandbox::start());
    let _ = |sandbox: &sandbox::Sandbox| goes(&sandbox.until(|seen| seen.executions() == 1));
}

/// An error can be passed on as `Box<dyn Error + Send + Sync>`, by `?` alone.
#[test]
fn every_error_is_one() {
    fn error<T: std::error::Error + Send + Sync + 'static>() {}
    error::<Error>();
    error::<BuildError>();
    error::<BodyError>();
    error::<HeaderRefused>();
    error::<engine::IllegalEntry>();
    error::<profile::KeyError>();
    error::<profile::ProfileError>();
    error::<profile::ProfileFileError>();
    error::<journal::JournalError>();
}
