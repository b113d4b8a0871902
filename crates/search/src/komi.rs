//! Half-integer komi and the margin that each side needs.

use std::fmt;
use std::str::FromStr;
use superko_rules::Color;

/// A half-integer komi, added to White's score. Stored as twice its value, which is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Komi(i32);

/// A komi that is no half-integer within ±64.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KomiError(String);

impl fmt::Display for KomiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not valid: expected a half-integer such as -3.5 or 0.5, between -64.5 and 64.5", self.0)
    }
}

impl std::error::Error for KomiError {}

impl Komi {
    /// The komi just below the margin `value`: Black wins at it exactly if the value is at least `value`.
    pub fn below(value: i32) -> Komi {
        Komi(2 * value - 1)
    }

    /// Reads a JSON or TOML number.
    pub fn from_f64(number: f64) -> Result<Komi, KomiError> {
        let twice = number * 2.0;
        if twice.fract() == 0.0 && twice.abs() <= 129.0 && (twice as i32) % 2 != 0 {
            Ok(Komi(twice as i32))
        } else {
            Err(KomiError(number.to_string()))
        }
    }

    /// The komi as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 2.0
    }

    /// The least margin (own area less the other's) with which `winner` wins at this komi.
    pub fn need(self, winner: Color) -> i32 {
        match winner {
            Color::Black => (self.0 + 1) / 2,
            Color::White => (1 - self.0) / 2,
        }
    }
}

impl fmt::Display for Komi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.as_f64())
    }
}

impl FromStr for Komi {
    type Err = KomiError;

    fn from_str(text: &str) -> Result<Komi, KomiError> {
        text.parse::<f64>().map_err(|_| KomiError(format!("{text:?}"))).and_then(Komi::from_f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_integer_is_won_by_exactly_one_side() {
        for twice in (-129..=129).step_by(2) {
            let komi = Komi(twice);
            for score in -64..=64 {
                let black = score >= komi.need(Color::Black);
                let white = -score >= komi.need(Color::White);
                assert!(black != white, "komi {komi} score {score}");
                assert_eq!(black, f64::from(score) > komi.as_f64());
            }
        }
        assert_eq!(Komi::below(2).to_string(), "1.5");
        assert_eq!(Komi::below(0).to_string(), "-0.5");
        for bad in ["1", "0.25", "x", "", "nan", "inf", "65.5", "1e300"] {
            assert!(bad.parse::<Komi>().is_err(), "{bad}");
        }
    }
}
