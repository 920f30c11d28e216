//! Faults of HTTP/2.

use super::super::plan::Ending;
use super::Fault;

/// What only HTTP/2 can do. Nothing is executed; with [`executing`](Self::executing) the request is
/// served first, key store included, and only then does this happen in place of the answer.
impl Fault {
    /// The client sees its stream refused: RST_STREAM(REFUSED_STREAM). The other streams go on.
    ///
    /// By RFC 9113 it may take that for a promise that nothing was done; with
    /// [`executing`](Self::executing) it is a proxy's, and false. Over HTTP/1: FIN without a byte.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "http2")] {
    /// # let sandbox = Sandbox::start().await?;
    /// # let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build()?;
    /// sandbox.fail_next(Fault::refused_stream().executing());
    /// // Over HTTP/2 reqwest resends what was refused, unasked; here the key saves it.
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.headers()["idempotent-replay"], "true");
    /// assert_eq!((sandbox.requests().len(), sandbox.executions()), (2, 1));
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn refused_stream() -> Self {
        Self::gateway_cut("refused_stream", Ending::Refused)
    }

    /// The client sees GOAWAY with this error code (RFC 9113, section 7: 0 is NO_ERROR, 11
    /// ENHANCE_YOUR_CALM), then FIN. The last stream that it names is 0, none; with
    /// [`executing`](Self::executing) this request's own. All other streams of the connection end
    /// with it, their requests served or not. Over HTTP/1: FIN without a byte.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "http2")] {
    /// # let sandbox = Sandbox::start().await?;
    /// # let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build()?;
    /// sandbox.fail_next(Fault::goaway(11).executing()); // ENHANCE_YOUR_CALM
    /// let sent = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await;
    /// assert!(sent.is_err());
    /// assert_eq!(sandbox.executions(), 1);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn goaway(code: u32) -> Self {
        Self::gateway_cut("goaway", Ending::GoAway(code))
    }

    /// The client sees nothing any more, on the whole connection: what it sends there from now on,
    /// requests and PINGs alike, is read and dropped, and is in no record of the sandbox. As when a
    /// machine on the way forgets a connection that both ends think alive. Over HTTP/1: a stall
    /// until the client goes away.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "http2")] {
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build()?;
    /// sandbox.fail_next(Fault::black_hole());
    /// for _ in 0..2 {
    ///     let call = http.get(sandbox.url("/")).timeout(Duration::from_millis(200));
    ///     assert!(call.send().await.unwrap_err().is_timeout());
    /// }
    /// assert_eq!(sandbox.requests().len(), 1, "the second, on the same connection, is in no record");
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn black_hole() -> Self {
        Self::gateway_cut("black_hole", Ending::BlackHole)
    }
}
