//! What this crate may have of tokio: data structures and traits.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that asks cargo"
)]

use std::{collections::BTreeSet, process::Command};

/// Asked of cargo for this crate alone, since a build of the workspace unites what all crates need.
#[test]
fn nothing_of_tokio_that_runs_is_a_dependency() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package"])
        .arg(env!("CARGO_PKG_NAME"))
        .args(["--edges", "features,normal", "--invert", "tokio"])
        .args(["--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8(tree.stdout).unwrap();
    let reason = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{reason}");
    let features: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("tokio feature \"")?.split('"').next())
        .collect();
    assert_eq!(features, PASSIVE.into(), "{text}");
}

/// No `rt`, `net`, `time`, `fs`, `process`, `signal` or `macros` (which need a runtime to be of use).
const PASSIVE: [&str; 4] = ["bytes", "default", "io-util", "sync"];
