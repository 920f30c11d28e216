//! Calls that must not happen twice: a retry SDK around [`reqwest`].
//!
//! One business operation gets one idempotency key, drawn before the first byte
//! is sent. The same key and the same bytes go out on every attempt, until the
//! server's answer is final or nothing more can safely be done. **`Ok` means
//! that the server carried it out; every `Err` says truthfully whether it did.**
//!
//! ```no_run
//! use oncekey::{Client, Effect, Profile};
//!
//! # #[cfg(feature = "json")]
//! # async fn pay() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder().profile(Profile::verifika()).build()?;
//! let sent = client
//!     .post("https://api.verifika.tech/v1/incomes")
//!     .bearer_auth("vk_test_...")
//!     .json(&[("amount", 45000)])
//!     .send()
//!     .await;
//! match sent {
//!     Ok(response) => println!("carried out: {}", response.text()),
//!     Err(e) if e.effect() == Effect::NotApplied => println!("nothing happened: {e}"),
//!     Err(e) => println!("ask again under the same key, or look it up: {e}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! The [`guide`] has a section for each task, and the questions of design.
//!
//! | to | see |
//! |---|---|
//! | set timeouts, retries, polls | [`ClientBuilder`], [`Retry`], [`Poll`] |
//! | say how an API does idempotency | [`Profile`], [`profile`], [`Profile::presets`] |
//! | bring a key of your own | [`IdempotencyKey`] |
//! | bring fresh credentials to each attempt | [`Authorize`] |
//! | say when a 2xx is final | [`ClientBuilder::judge`] |
//! | poll a status resource, fetch an original, look up by a reference | [`ClientBuilder::poll_with`], [`ClientBuilder::recover_with`], [`Reconcile`] |
//! | know what an error means | [`Error::effect`], [`ErrorKind`] |
//! | survive a crash | `journal`, [`RequestBuilder::operation`], `Client::resume` (feature `journal`) |
//! | do without async | `blocking` (feature `blocking`) |
//! | see what was sent | [`Attempt`], [`Error::table`], [`Response::table`] |
//! | be told while it happens | [`Event`], [`ClientBuilder::on_event`], feature `tracing` |
//! | test against a server that breaks | `sandbox`, `testing` (feature `sandbox`), `docs/testing.md` |
//! | use it with `tower` or `reqwest-middleware` | `docs/composition.md` |
//! | know how it decides | [`engine`], [`Profile::read`] |
//!
//! # Features
//!
//! - `rustls` (default): TLS by rustls.
//! - `json` (default): `RequestBuilder::json`, `Response::json`.
//! - `form`: `RequestBuilder::form`.
//! - `native-tls`: TLS by the operating system's library.
//! - `http2`: HTTP/2, by ALPN. Without it the client speaks HTTP/1.1 alone.
//! - `gzip`: compressed answers. Without it none is asked for.
//! - `journal`: operations on record, under ids of your own; in memory.
//! - `sqlite`: the record in a file, `journal::Sqlite`. `sqlx` needs Rust 1.94.
//! - `profile-files`: [`Profile`] as a TOML file, `Profile::from_toml`.
//! - `blocking`: the same for threads, `oncekey::blocking`, without a
//!   runtime of your own.
//! - `sandbox`: the test provider, and assertions against its ledger.
//! - `backoff`: a schedule of the `backoff` crate, which is **unmaintained**
//!   (RUSTSEC-2025-0012) and brings a second unmaintained crate; for those who
//!   have such a schedule already.
//! - `tracing`: spans named `oncekey.operation` and `oncekey.attempt`, with the
//!   fields of OpenTelemetry's conventions for HTTP clients
//!   (`http.request.method`, `http.request.resend_count`,
//!   `http.response.status_code`, `server.address`, `server.port`, `url.path`,
//!   `error.type`) and `oncekey.operation.id`, `oncekey.profile`,
//!   `oncekey.attempts`, `oncekey.attempt.kind`, `oncekey.verdict`,
//!   `oncekey.wait_ms`, `oncekey.effect`. Level `INFO`, target `oncekey`.
//! - `full`: all of these but `native-tls`.
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod attempt;
mod authorize;
#[cfg(feature = "blocking")]
#[cfg_attr(docsrs, doc(cfg(feature = "blocking")))]
pub mod blocking;
mod call;
mod client;
#[cfg(feature = "journal")]
mod desk;
mod draft;
#[doc(hidden)]
pub mod driver;
pub mod engine;
mod error;
mod event;
#[cfg(feature = "journal")]
mod fingerprint;
#[cfg(any(doc, doctest))]
#[doc = include_str!("guide.md")]
pub mod guide {}
#[cfg(feature = "journal")]
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
pub mod journal;
#[cfg(feature = "journal")]
mod logbook;
mod look;
mod order;
mod pairs;
mod policy;
pub mod profile;
mod reconcile;
#[cfg(feature = "journal")]
mod recover;
mod request;
mod response;
mod runtime;
#[cfg(feature = "sandbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "sandbox")))]
pub mod sandbox;
mod submission;
#[cfg(feature = "sandbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "sandbox")))]
pub mod testing;
mod trace;
mod transport;

pub use reqwest;

pub use attempt::{Attempt, Failure, Table, WaitReason};
pub use authorize::{Authorize, HeaderRefused, Parts};
pub use client::{Client, ClientBuilder};
pub use engine::Effect;
pub use error::{BuildError, Error, ErrorKind};
pub use event::{AttemptEnded, AttemptStarted, Ended, Event, Waiting};
pub use policy::{Poll, Retry};
pub use profile::{Profile, Replay};
pub use reconcile::{Doubtful, Found, Reconcile};
#[cfg(feature = "journal")]
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
pub use recover::{OperationRecord, RecordState, Resume, ResumeAll, Resuming};
pub use request::RequestBuilder;
#[cfg(feature = "json")]
pub use response::BodyError;
pub use response::Response;
pub use submission::{IdempotencyKey, OperationId};

/// The README's program, kept compiling.
#[cfg(all(doctest, feature = "json", feature = "sqlite"))]
#[doc = include_str!("../README.md")]
struct Readme;
