//! The same for threads: every name and every promise of the async client,
//! without a runtime of the caller's.
//!
//! ```
//! # #[cfg(all(feature = "sandbox", feature = "json"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use oncekey::blocking::Client;
//! use oncekey::{Effect, Profile};
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let sandbox = runtime.block_on(oncekey::sandbox::Sandbox::start())?;
//! # let url = sandbox.url("/v1/incomes");
//! let client = Client::builder().profile(Profile::verifika()).build()?;
//! match client.post(url).bearer_auth("vk_test_...").json(&[("amount", 45000)]).send() {
//!     Ok(response) => println!("carried out: {}", response.text()),
//!     Err(e) if e.effect() == Effect::NotApplied => println!("nothing happened: {e}"),
//!     Err(e) => println!("ask again under the same key, or look it up: {e}"),
//! }
//! # assert_eq!(sandbox.executions(), 1);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "sandbox", feature = "json")))]
//! # fn main() {}
//! ```
//!
//! What is given to it and comes of it ([`Profile`](crate::Profile),
//! [`Response`](crate::Response), [`Error`](crate::Error), keys, records) is of
//! the same types as in the crate's root. A journal in a file is opened by
//! `journal::Sqlite::blocking_open` and its like.
//!
//! # Threads
//!
//! A client has one thread, on which the requests of all its clones are sent;
//! each caller waits on its own. The thread ends with the last clone, and
//! whoever drops that one waits for it: at most for the system's look-up of a
//! host name that an attempt did not wait for. Hooks (`authorize`, `judge`) run on that
//! thread: what blocks there holds up everybody's calls.
//!
//! # Inside a runtime
//!
//! Where [`tokio::runtime::Handle::try_current`] finds a runtime, a call would
//! block what other tasks need. It sends nothing and fails: with
//! [`ErrorKind::Request`](crate::ErrorKind::Request), with a
//! [`BuildError`](crate::BuildError), or with a journal's `Setting` error. Use
//! [`crate::Client`] there. Threads of `spawn_blocking` count as inside: have
//! them say `Handle::current().block_on(..)` to a call of [`crate::Client`].
//! Dropping a client is allowed everywhere.

mod builder;
mod client;
#[cfg(feature = "journal")]
mod recover;
mod request;
#[cfg(feature = "journal")]
mod resuming;
#[cfg(test)]
mod tests;
mod worker;

pub use builder::ClientBuilder;
pub use client::Client;
#[cfg(feature = "journal")]
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
pub use recover::{Resume, ResumeAll};
pub use request::RequestBuilder;
#[cfg(feature = "journal")]
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
pub use resuming::Resuming;
