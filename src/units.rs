//! Sizes, durations and times as people write them, and how much memory there is.

use std::path::Path;
use std::time::{Duration, SystemTime};
use superko_search::MOST_THREADS;

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

/// Seconds since the epoch of a time as [`now_rfc3339`] writes it.
pub fn unix_seconds(rfc3339: &str) -> Option<f64> {
    let time = humantime::parse_rfc3339(rfc3339).ok()?;
    time.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs_f64())
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

/// Refuses a number of search threads that no search takes.
pub fn check_threads(threads: usize) -> Result<(), String> {
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(format!("threads {threads} is not valid: expected 1 to {MOST_THREADS}, at most one for each core"));
    }
    Ok(())
}

/// The least table that is accepted, in bytes.
const MIN_TABLE_BYTES: u64 = 1 << 20;

/// Memory that this process may use, in bytes: the machine's, or the limit of a control group that it is in if that is lower.
fn memory_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Some(group_limit(Path::new("/sys/fs/cgroup"), group).unwrap_or(u64::MAX).min(kib << 10))
}

/// The lowest memory limit of a control group (version 2) and those around it; a service of systemd is two or three deep.
fn group_limit(root: &Path, group: &str) -> Option<u64> {
    let limit = |group: &Path| std::fs::read_to_string(root.join(group).join("memory.max")).ok()?.trim().parse().ok();
    Path::new(group).ancestors().filter_map(limit).min()
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
    fn the_lowest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let group = root.path().join("system.slice/superko.service");
        std::fs::create_dir_all(&group).expect("a group");
        let limit = || group_limit(root.path(), "system.slice/superko.service");
        assert_eq!(limit(), None);
        for (path, text, lowest) in [
            ("system.slice/superko.service", "max", None),
            ("system.slice", "2048", Some(2048)),
            ("system.slice/superko.service", "4096", Some(2048)),
            ("", "1024", Some(1024)),
        ] {
            std::fs::write(root.path().join(path).join("memory.max"), format!("{text}\n")).expect("a limit");
            assert_eq!(limit(), lowest, "{path} {text}");
        }
    }

    #[test]
    fn a_table_must_fit_the_memory() {
        assert!(check_table_size(1 << 50).expect_err("a pebibyte").contains("memory"));
        assert!(check_table_size(1).is_err());
        assert_eq!(check_table_size(1 << 20), Ok(()));
    }
}
