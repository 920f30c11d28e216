//! scratch docs
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod attempt;
mod authorize;
mod call;
mod client;
mod driver;
pub mod engine;
mod error;
mod pairs;
mod policy;
pub mod profile;
mod request;
mod response;
mod runtime;
#[cfg(feature = "sandbox")]
pub mod sandbox;
mod submission;
mod transport;

pub use reqwest;

pub use attempt::{Attempt, Failure, Table, WaitReason};
pub use authorize::{Authorize, HeaderRefused, Parts};
pub use client::{Client, ClientBuilder};
pub use engine::Effect;
pub use error::{BuildError, Error, ErrorKind};
pub use policy::{Poll, Retry};
pub use profile::{Profile, Replay};
pub use request::RequestBuilder;
#[cfg(feature = "json")]
pub use response::BodyError;
pub use response::Response;
pub use submission::{IdempotencyKey, OperationId};
