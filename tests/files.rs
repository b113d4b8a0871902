//! The files that other programs read agree with the code.

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
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
