//! What a call costs.

use windlass_kernel::Usage;

/// The most a million tokens may cost, in US dollars: what is above it is a slip of the pen.
const MAX_DOLLARS: f64 = 1_000_000.0;

/// Prices of one model by class of tokens, in millionths of a US dollar per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// What a request with a long input costs instead.
    pub above: Option<Above>,
}

/// Prices of a request whose input is longer than `tokens`, all of its tokens, those of the output too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Above {
    pub tokens: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("a price of {dollars} for {class} is none: give US dollars per million tokens, from 0 to 1000000")]
pub struct PriceError {
    pub class: &'static str,
    pub dollars: f64,
}

impl Prices {
    /// Prices given in US dollars per million tokens.
    pub fn from_dollars(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Result<Prices, PriceError> {
        Ok(Prices {
            input: micro("input", input)?,
            output: micro("output", output)?,
            cache_read: micro("cache_read", cache_read)?,
            cache_write: micro("cache_write", cache_write)?,
            above: None,
        })
    }

    /// These prices, and `long` for a request whose input is longer than `tokens`.
    pub fn with_above(self, tokens: u64, long: Prices) -> Prices {
        let Prices { input, output, cache_read, cache_write, .. } = long;
        Prices { above: Some(Above { tokens, input, output, cache_read, cache_write }), ..self }
    }

    /// What `usage` costs in millionths of a US dollar, rounded to the nearest.
    pub fn cost_micro_usd(&self, usage: &Usage) -> u64 {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let prices = self.of(usage);
        let sum = of(usage.input, prices.input)
            + of(usage.output, prices.output)
            + of(usage.cache_read, prices.cache_read)
            + of(usage.cache_write, prices.cache_write);
        u64::try_from((sum + 500_000) / 1_000_000).unwrap_or(u64::MAX)
    }

    /// The prices that hold for this much input, cached or not.
    fn of(&self, usage: &Usage) -> Prices {
        let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        match self.above {
            Some(Above { tokens, input: price, output, cache_read, cache_write }) if input > tokens => {
                Prices { input: price, output, cache_read, cache_write, above: None }
            }
            _ => *self,
        }
    }
}

fn micro(class: &'static str, dollars: f64) -> Result<u64, PriceError> {
    if !(0.0..=MAX_DOLLARS).contains(&dollars) {
        return Err(PriceError { class, dollars });
    }
    Ok((dollars * 1_000_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        Prices::from_dollars(3.0, 15.0, 0.3, 3.75).unwrap()
    }

    #[test]
    fn dollars_become_millionths() {
        assert_eq!(
            prices(),
            Prices { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000, above: None }
        );
    }

    #[test]
    fn each_class_has_its_price() {
        let usage = Usage { input: 1_000, cache_read: 10_000, cache_write: 2_000, output: 500, reasoning: 400 };
        // 1,000 × $3 + 10,000 × $0.30 + 2,000 × $3.75 + 500 × $15, per million; reasoning is part of output.
        assert_eq!(prices().cost_micro_usd(&usage), 3_000 + 3_000 + 7_500 + 7_500);
    }

    #[test]
    fn a_long_request_pays_the_upper_tier_for_all_its_tokens() {
        let tiered = prices().with_above(200_000, Prices::from_dollars(6.0, 22.5, 0.6, 7.5).unwrap());
        let usage =
            |input| Usage { input, cache_read: 150_000, cache_write: 40_000, output: 1_000, ..Usage::default() };
        // 10,000 more of input than the tier allows for, most of it from the cache.
        assert_eq!(tiered.cost_micro_usd(&usage(10_000)), 30_000 + 45_000 + 150_000 + 15_000);
        assert_eq!(tiered.cost_micro_usd(&usage(20_000)), 120_000 + 90_000 + 300_000 + 22_500);
        assert_eq!(tiered.cost_micro_usd(&Usage { input: u64::MAX, cache_read: 9, ..Usage::default() }), u64::MAX);
    }

    #[test]
    fn the_sum_is_rounded_once() {
        let cheap = Prices::from_dollars(0.2, 0.2, 0.0, 0.0).unwrap();
        let usage = |input, output| Usage { input, output, ..Usage::default() };
        assert_eq!(cheap.cost_micro_usd(&usage(1, 1)), 0);
        assert_eq!(cheap.cost_micro_usd(&usage(2, 1)), 1);
        assert_eq!(cheap.cost_micro_usd(&usage(5, 0)), 1);
    }

    #[test]
    fn no_amount_overflows() {
        let usage = Usage { input: u64::MAX, ..Usage::default() };
        assert_eq!(Prices { input: u64::MAX, ..Prices::default() }.cost_micro_usd(&usage), u64::MAX);
    }

    #[test]
    fn a_price_that_is_none_is_named() {
        let error = Prices::from_dollars(3.0, -1.0, 0.0, 0.0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a price of -1 for output is none: give US dollars per million tokens, from 0 to 1000000"
        );
        assert!(Prices::from_dollars(f64::NAN, 0.0, 0.0, 0.0).is_err());
    }
}
