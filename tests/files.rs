//! The files that other programs read agree with the code.

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Metrics that the `prometheus` crate's process collector adds on its own.
const PROCESS: [&str; 1] = ["process_resident_memory_bytes"];

#[test]
fn every_metric_on_the_dashboard_exists() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("dashboards/superko.json")).expect("the dashboard is JSON");
    let source = read("src/metrics.rs") + &read("crates/search/src/statistics.rs");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut places = Vec::new();
    for (index, panel) in panels.iter().enumerate() {
        assert_eq!(panel["id"], index + 1);
        for field in ["title", "description"] {
            assert!(!panel[field].as_str().unwrap_or("").is_empty(), "panel {index} has a {field}");
        }
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "panel {index} has a unit");
        let place = (panel["gridPos"]["x"].as_u64(), panel["gridPos"]["y"].as_u64());
        assert!(!places.contains(&place), "panel {index} overlaps another");
        places.push(place);
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("expr");
            assert_metrics_exist(&source, expression);
        }
    }
    assert!(panels.len() > 10);
    let alerts = read("dashboards/alerts.yml");
    let expressions: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr:")).collect();
    assert!(!expressions.is_empty());
    expressions.iter().for_each(|expression| assert_metrics_exist(&source, expression));
}

fn assert_metrics_exist(source: &str, expression: &str) {
    let words = expression.split(|symbol: char| !symbol.is_ascii_alphanumeric() && symbol != '_');
    for name in words.filter(|word| word.starts_with("superko_") || word.starts_with("process_")) {
        let base = ["_sum", "_count", "_bucket"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        let known = source.contains(&format!("\"{name}\"")) || source.contains(&format!("\"{base}\"")) || PROCESS.contains(&name);
        assert!(known, "{expression}: the daemon has no {name}");
    }
}

#[test]
fn every_path_of_the_readme_exists() {
    let readme = read("README.md");
    let map = readme.split("## Map").nth(1).expect("the README has a map").split("\n## ").next().expect("a section");
    let paths: Vec<&str> = map.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
    assert!(paths.len() > 10);
    for path in paths {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(), "README names {path}");
    }
}

#[test]
fn the_checker_depends_on_nothing_of_ours() {
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--package", "superko-check", "--edges", "normal,build", "--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).expect("UTF-8");
    let mut packages = tree.lines();
    assert!(packages.next().is_some_and(|own| own.starts_with("superko-check ")), "{tree}");
    assert!(!packages.any(|package| package.starts_with("superko")), "{tree}");
}
