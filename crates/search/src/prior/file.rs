//! The file of a prior: a header of fixed size, the weights, a checksum over both; numbers in little-endian order.

use super::{Model, Prior, logistic, net};
use crate::board_set::mix;
use std::fmt;
use std::path::Path;

const MAGIC: &[u8; 8] = b"SKOPRIOR";
/// Changes with the layout of the file and with the meaning of any input of a model.
const VERSION: u32 = 1;
/// Magic, version, kind, number of weights, scale, temper, effort.
const HEADER: usize = 8 + 6 * 4;
const CHECKSUM: usize = 8;
/// No prior's file is as long.
const MOST_BYTES: u64 = 1 << 20;

/// Why bytes are no prior.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorError(String);

impl fmt::Display for PriorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PriorError {}

fn checksum(bytes: &[u8]) -> u64 {
    // Each step is a bijection of the state for a fixed byte, and of the byte for a fixed state: one damaged byte always shows.
    bytes.iter().fold(bytes.len() as u64, |state, &byte| mix(state ^ u64::from(byte)).wrapping_add(1))
}

impl Prior {
    /// Reads a prior from the bytes of its file. The prior is meant to last as long as the process and is never freed.
    ///
    /// Errors: a wrong length, magic, version, kind, number of weights or checksum, or a number outside its range.
    pub fn from_bytes(bytes: &[u8]) -> Result<&'static Prior, PriorError> {
        let refuse = |what: String| Err(PriorError(format!("not a valid prior file: {what}; write a new one with \"superko prior fit\"")));
        if bytes.len() < HEADER + CHECKSUM {
            return refuse(format!("it has {} bytes, expected {} at least", bytes.len(), HEADER + CHECKSUM));
        }
        if &bytes[..8] != MAGIC {
            return refuse("it does not start with SKOPRIOR".to_owned());
        }
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if word(8) != VERSION {
            return refuse(format!("its version is {}, expected {VERSION}", word(8)));
        }
        let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM);
        if checksum(body) != u64::from_le_bytes(sum.try_into().expect("eight bytes")) {
            return refuse("its checksum does not match its content".to_owned());
        }
        let (kind, count) = (word(12), word(16) as usize);
        let expected = match kind {
            0 => 0,
            1 => logistic::FEATURES,
            2 => net::WEIGHTS,
            _ => return refuse(format!("its kind is {kind}, expected 0 (uniform), 1 (logistic) or 2 (net)")),
        };
        if count != expected || body.len() != HEADER + 4 * count {
            return refuse(format!("it announces {count} weights in {} bytes, expected {expected} weights", body.len() - HEADER));
        }
        let (scale, temper, effort) = (f32::from_bits(word(20)), f32::from_bits(word(24)), word(28));
        if !(1.0..=1e6).contains(&scale) || !(0.01..=10.0).contains(&temper) || effort > 1 {
            return refuse(format!("scale {scale}, temper {temper}, effort {effort}: expected 1 to 1000000, 0.01 to 10, 0 or 1"));
        }
        let weights: Vec<f32> = (0..count).map(|index| f32::from_bits(word(HEADER + 4 * index))).collect();
        if let Some(weight) = weights.iter().find(|weight| weight.abs() > 1e6 || weight.is_nan()) {
            return refuse(format!("a weight is {weight}, expected one within ±1000000"));
        }
        let model = match kind {
            0 => Model::Uniform,
            1 => Model::Logistic(weights),
            _ => Model::Net(weights),
        };
        Ok(Prior { model, scale, temper, effort: effort == 1, ..Prior::uniform() }.leak())
    }

    /// Reads the file at `path`; errors as [`from_bytes`](Self::from_bytes), with the path, and those of the file system.
    pub fn read(path: &Path) -> Result<&'static Prior, PriorError> {
        let unreadable = |error: std::io::Error| PriorError(format!("cannot read the prior {}: {error}", path.display()));
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            let found = if metadata.is_file() { format!("has {} bytes", metadata.len()) } else { "is no file".to_owned() };
            return Err(PriorError(format!("{} {found}: expected a prior's file, of at most {MOST_BYTES} bytes", path.display())));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        Prior::from_bytes(&bytes).map_err(|error| PriorError(format!("{}: {error}", path.display())))
    }

    /// The prior that a user names: `builtin`, `uniform`, or a file; errors as [`read`](Self::read).
    pub fn named(name: &str) -> Result<&'static Prior, PriorError> {
        match name {
            "builtin" => Ok(Prior::builtin()),
            "uniform" => Ok(Prior::uniform().leak()),
            file => Prior::read(Path::new(file)),
        }
    }

    /// The content of the prior's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, weights): (u32, &[f32]) = match &self.model {
            Model::Uniform => (0, &[]),
            Model::Logistic(weights) => (1, weights),
            Model::Net(weights) => (2, weights),
        };
        let mut bytes = MAGIC.to_vec();
        for word in [VERSION, kind, weights.len() as u32, self.scale.to_bits(), self.temper.to_bits(), u32::from(self.effort)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(weights.iter().flat_map(|weight| weight.to_le_bytes()));
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_back_and_every_damaged_byte_shows() {
        for prior in
            [Prior::uniform(), Prior::random(5), Prior { model: Model::Logistic(vec![0.5; logistic::FEATURES]), ..Prior::uniform() }]
        {
            let bytes = prior.to_bytes();
            assert_eq!(Prior::from_bytes(&bytes), Ok(prior.clone().leak()));
            let mut damaged = bytes.clone();
            for at in 0..bytes.len() {
                damaged[at] ^= 1 << (at % 8);
                assert!(Prior::from_bytes(&damaged).is_err(), "byte {at}");
                damaged[at] = bytes[at];
                assert!(Prior::from_bytes(&bytes[..at]).is_err(), "cut to {at} bytes");
            }
        }
    }

    #[test]
    fn well_formed_nonsense_is_refused() {
        let seal = |prior: Prior| Prior::from_bytes(&prior.to_bytes()).unwrap_err().to_string();
        assert!(seal(Prior { scale: 0.0, ..Prior::uniform() }).contains("scale 0"));
        assert!(seal(Prior { temper: f32::NAN, ..Prior::uniform() }).contains("temper NaN"));
        assert!(
            seal(Prior { model: Model::Logistic(vec![f32::INFINITY; logistic::FEATURES]), ..Prior::uniform() }).contains("weight is inf")
        );
        assert!(seal(Prior { model: Model::Net(vec![0.0; 3]), ..Prior::uniform() }).contains("3 weights"));
        assert!(Prior::read(Path::new("no/such/file")).unwrap_err().to_string().contains("no/such/file"));
    }
}
