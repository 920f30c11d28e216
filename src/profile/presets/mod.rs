//! One file per provider.

mod adyen;
mod asgi_idempotency_header;
mod blindpay;
mod checkout;
mod dwolla;
mod express_idempotency;
mod fiber;
mod generic;
mod gocardless;
mod idempotent_api;
mod ietf;
mod increase;
mod laravel;
mod mangopay;
mod memo_bank;
mod mercado_pago;
mod modern_treasury;
mod mollie;
mod moov;
mod node_idempotency;
mod open_banking_uk;
mod open_finance_brasil;
mod paymongo;
mod paypal;
mod stripe;
mod toss;
mod verifika;

use std::time::Duration;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

/// The lifetime of keys where none is published: long enough for any run, too
/// short for a guess to pay twice.
const UNPUBLISHED: Duration = Duration::from_secs(3600);

impl Profile {
    /// Every preset, [`Profile::generic`] first. `docs/profiles.md` is made from them.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let short = Profile::presets().into_iter().filter(|p| p.key_lifetime() < Profile::generic().key_lifetime());
    /// assert!(short.map(|p| p.id().to_owned()).any(|id| id == "paypal-orders-v2"));
    /// ```
    pub fn presets() -> Vec<Self> {
        vec![
            Self::generic(),
            Self::verifika(),
            Self::ietf(),
            Self::stripe(),
            Self::stripe_v2(),
            Self::toss(),
            Self::adyen(),
            Self::gocardless(),
            Self::mollie(),
            Self::checkout(),
            Self::mangopay(),
            Self::mercado_pago(),
            Self::paypal(),
            Self::increase(),
            Self::moov(),
            Self::modern_treasury(),
            Self::dwolla(),
            Self::open_banking_uk(),
            Self::open_finance_brasil(),
            Self::paymongo(),
            Self::memo_bank(),
            Self::blindpay(),
            Self::node_idempotency(),
            Self::express_idempotency(),
            Self::asgi_idempotency_header(),
            Self::idempotent_api(),
            Self::fiber(),
            Self::laravel(),
        ]
    }
}
