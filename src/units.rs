//! Sizes, durations and times as people write them, and how much memory there is.

use std::time::{Duration, SystemTime};

/// Reads `1GiB`, `64MiB`, `512KiB` or a plain number of bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|symbol: char| symbol.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1u64,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => 0,
    };
    match digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit)) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("{text:?} is not a size: expected a whole number with KiB, MiB, GiB or TiB, such as 1GiB")),
    }
}

/// Reads `60s`, `90m`, `2h` or a combination such as `1h30m`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(format!("{text:?} is not a duration: expected a positive number with s, m or h, such as 60s")),
    }
}

/// The smallest and the largest table that makes sense here: refuses what would not fit the memory.
pub fn check_table_size(bytes: u64) -> Result<(), String> {
    if bytes < MIN_TABLE_BYTES {
        return Err(format!("{bytes} bytes is too small a table: expected at least {MIN_TABLE_BYTES} bytes (1MiB)"));
    }
    match memory_bytes() {
        Some(memory) if bytes > memory => Err(format!(
            "{bytes} bytes is more than this machine's memory of {memory} bytes: the table must fit the memory, choose a smaller one"
        )),
        _ => Ok(()),
    }
}

/// The least table that is accepted, in bytes.
const MIN_TABLE_BYTES: u64 = 1 << 20;

/// Memory that this process may use, in bytes: the machine's, or its control group's limit if that is lower.
fn memory_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(group.unwrap_or(u64::MAX).min(kib << 10))
}

/// The present time in RFC 3339, UTC, to the second.
pub fn now_rfc3339() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_parse() {
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("4096"), Ok(4096));
        for bad in ["", "GiB", "1.5GiB", "1GB", "-1KiB", "0", "99999999999TiB", "é"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_time("90m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "60", "0s", "-1s", "soon"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_table_must_fit_the_memory() {
        assert!(check_table_size(1 << 50).expect_err("a pebibyte").contains("memory"));
        assert!(check_table_size(1).is_err());
        assert_eq!(check_table_size(1 << 20), Ok(()));
    }
}
