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
        })
    }

    /// What `usage` costs in millionths of a US dollar, rounded to the nearest.
    pub fn cost_micro_usd(&self, usage: &Usage) -> u64 {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = of(usage.input, self.input)
            + of(usage.output, self.output)
            + of(usage.cache_read, self.cache_read)
            + of(usage.cache_write, self.cache_write);
        u64::try_from((sum + 500_000) / 1_000_000).unwrap_or(u64::MAX)
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
            Prices { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000 }
        );
    }

    #[test]
    fn each_class_has_its_price() {
        let usage = Usage { input: 1_000, cache_read: 10_000, cache_write: 2_000, output: 500, reasoning: 400 };
        // 1,000 × $3 + 10,000 × $0.30 + 2,000 × $3.75 + 500 × $15, per million; reasoning is part of output.
        assert_eq!(prices().cost_micro_usd(&usage), 3_000 + 3_000 + 7_500 + 7_500);
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
