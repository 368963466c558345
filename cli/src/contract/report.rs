//! The verdict, for people and for programs.

use crate::problem::{self, Problem};
use chronicle_connection_tokio::{Comparison, Incompatibility};
use chronicle_simulation::plural;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{self, Write as _},
};

/// What came of a comparison.
pub(super) struct Report {
    pub(super) is_compatible: bool,
    pub(super) old_version: Option<String>,
    pub(super) new_version: Option<String>,
    pub(super) incompatibilities: Vec<Incompatibility>,
    /// What a server found, in its words.
    pub(super) reported: Vec<String>,
    /// What else there is to say about a refusal.
    pub(super) remarks: Vec<String>,
    pub(super) missing_on_server: Vec<Incompatibility>,
}

impl Report {
    /// Nothing was found.
    pub(super) fn new(old_version: Option<String>, new_version: Option<String>) -> Self {
        let told = |version: Option<String>| version.filter(|version| !version.is_empty());
        Self {
            is_compatible: true,
            old_version: told(old_version),
            new_version: told(new_version),
            incompatibilities: Vec::new(),
            reported: Vec::new(),
            remarks: Vec::new(),
            missing_on_server: Vec::new(),
        }
    }

    pub(super) fn of(
        comparison: Comparison,
        old_version: Option<String>,
        new_version: Option<String>,
    ) -> Self {
        Self {
            is_compatible: comparison.is_compatible(),
            incompatibilities: comparison.incompatibilities,
            missing_on_server: comparison.missing_on_server,
            ..Self::new(old_version, new_version)
        }
    }

    /// Prints the report, and gives the verdict.
    pub(super) fn print(&self, json: bool) -> Result<(), Problem> {
        let mut out = io::stdout().lock();
        let printed = match json {
            true => writeln!(out, "{}", self.to_json()),
            false => self.write_table(&mut out),
        };
        let verdict = match self.is_compatible {
            true => Ok(()),
            false => Err(Problem::Found),
        };
        problem::told(printed, verdict)
    }

    fn to_json(&self) -> Value {
        let reported = self.reported.iter().map(|text| {
            json!({ "kind": null, "path": null, "before": null, "after": null, "message": text })
        });
        let incompatibilities = self.incompatibilities.iter().map(finding).chain(reported);
        let missing = self.missing_on_server.iter().map(finding);
        json!({
            "compatible": self.is_compatible,
            "old_version": self.old_version,
            "new_version": self.new_version,
            "incompatibilities": incompatibilities.collect::<Vec<_>>(),
            "missing_on_server": missing.collect::<Vec<_>>(),
        })
    }

    fn write_table(&self, out: &mut impl io::Write) -> io::Result<()> {
        let version = |version: &Option<String>| version.clone().unwrap_or("unknown".to_owned());
        let verdict = if self.is_compatible {
            "compatible"
        } else {
            "incompatible"
        };
        let findings = self.incompatibilities.len() + self.reported.len();
        writeln!(
            out,
            "{verdict}: {findings} {}, version {} against {}",
            plural("finding", findings),
            version(&self.old_version),
            version(&self.new_version),
        )?;
        write_rows(out, &self.incompatibilities)?;
        for text in self.reported.iter().chain(&self.remarks) {
            writeln!(out, "  {text}")?;
        }
        if !self.missing_on_server.is_empty() {
            let count = self.missing_on_server.len();
            writeln!(
                out,
                "missing on the older server, which breaks nothing: {count}"
            )?;
            write_rows(out, &self.missing_on_server)?;
        }
        Ok(())
    }
}

fn write_rows(out: &mut impl io::Write, findings: &[Incompatibility]) -> io::Result<()> {
    let width = |text: fn(&Incompatibility) -> &str| {
        let lengths = findings.iter().map(|finding| text(finding).chars().count());
        lengths.max().unwrap_or_default()
    };
    let (kinds, paths) = (width(|one| one.kind.name()), width(|one| &one.path));
    for finding in findings {
        let (kind, path, before) = (finding.kind.name(), &finding.path, &finding.before);
        let after = finding.after.as_deref().unwrap_or("gone");
        writeln!(out, "  {kind:kinds$}  {path:paths$}  {before} -> {after}")?;
    }
    // What it means is the same for all of a kind, or nearly.
    let meanings = findings.iter().map(|one| (one.kind, &one.message));
    for (kind, meaning) in meanings.collect::<BTreeSet<_>>() {
        writeln!(out, "  {kind}: {meaning}")?;
    }
    Ok(())
}

fn finding(finding: &Incompatibility) -> Value {
    json!({
        "kind": finding.kind.name(),
        "path": finding.path,
        "before": finding.before,
        "after": finding.after,
        "message": finding.message,
    })
}
