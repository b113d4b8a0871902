//! A short selftest of every board of the mix; the long one is `superko selftest`.

use std::time::Duration;
use superko_rules::parse_board_size;
use superko_search::{SelftestOptions, on_large_stack, selftest};

fn check(certificate: &[u8]) -> Result<(), String> {
    superko_check::check(certificate, &mut |_| {}).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn solver_and_oracle_agree() {
    for board in std::env::var("SUPERKO_SELFTEST_BOARDS").as_deref().unwrap_or("1x5 1x6 2x2 2x3 2x4 3x3 1x7 2x5 3x4").split(' ') {
        let seconds = std::env::var("SUPERKO_SELFTEST_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
        let report = on_large_stack({
            let boards = vec![parse_board_size(board).unwrap()];
            move || {
                let time = Duration::from_secs(seconds);
                selftest(
                    &SelftestOptions { boards, seed: 1, time, cases: None, table: None, checker: Some(check), threads: 3 },
                    &mut |_| {},
                )
            }
        });
        println!("{board} positions {} comparisons {} skipped {}", report.positions, report.comparisons, report.skipped);
        for (name, count) in &report.coverage {
            println!("    {count:>9} {name}");
        }
        assert!(report.mismatches.is_empty(), "{}", report.mismatches[0]);
        assert!(report.comparisons > 0);
    }
}

#[test]
fn the_same_seed_makes_the_same_cases() {
    let run = || {
        let options = SelftestOptions {
            boards: Vec::new(),
            seed: 4711,
            time: Duration::from_secs(600),
            cases: Some(24),
            table: None,
            checker: Some(check),
            threads: 1,
        };
        on_large_stack(move || selftest(&options, &mut |_| {}))
    };
    let report = run();
    assert!(report.mismatches.is_empty(), "{}", report.mismatches[0]);
    assert_eq!(report, run());
}
