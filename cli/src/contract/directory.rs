//! A directory of fetched files, beside which there may be others.
//!
//! The first line of a .proto file says whose it is. What was fetched has one such file at least, so
//! that the files without such a line are known by their company.

use crate::problem::{Problem, bad_input};
use chronicle_connection_tokio::ProtoFile;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// What is to be in a directory. Nothing is written before all of it is known to be allowed.
pub(super) struct Directory<'a> {
    path: &'a Path,
    header: String,
    /// .proto files of an earlier fetch, by name.
    earlier: BTreeSet<String>,
    files: BTreeMap<String, Vec<u8>>,
}

/// What was done.
pub(super) struct Written {
    pub(super) files: usize,
    pub(super) changed: usize,
    pub(super) removed: usize,
}

impl<'a> Directory<'a> {
    /// Looks at what is there. The title says in each file which contract it is of.
    pub(super) fn open(path: &'a Path, title: &str) -> Result<Self, Problem> {
        let mut earlier = BTreeSet::new();
        for inner in ["", "protobuf-net/"] {
            for name in names(&path.join(inner))? {
                let name = format!("{inner}{name}");
                if name.ends_with(".proto") && is_fetched(&path.join(&name))? {
                    earlier.insert(name);
                }
            }
        }
        Ok(Self {
            path,
            header: format!("{BEGIN}{title}{END}"),
            earlier,
            files: BTreeMap::new(),
        })
    }

    /// Adds a file that says whose it is.
    pub(super) fn add_proto(&mut self, file: ProtoFile) -> Result<(), Problem> {
        let ProtoFile { name, content } = file;
        let path = self.path.join(&name);
        if !self.earlier.contains(&name) && exists(&path)? {
            return Err(not_ours(&path));
        }
        let content = format!("{}\n\n{content}", self.header);
        self.files.insert(name, content.into_bytes());
        Ok(())
    }

    /// Adds a file that cannot say whose it is.
    pub(super) fn add(&mut self, name: &str, content: Vec<u8>) -> Result<(), Problem> {
        let path = self.path.join(name);
        if self.earlier.is_empty() && exists(&path)? {
            return Err(not_ours(&path));
        }
        self.files.insert(name.to_owned(), content);
        Ok(())
    }

    /// Writes what differs, and removes what an earlier fetch has left over.
    pub(super) fn write(self) -> Result<Written, Problem> {
        let mut changed = 0;
        for (name, content) in &self.files {
            let path = self.path.join(name);
            // A file that stays as it is makes nobody build anew.
            if fs::read(&path).is_ok_and(|there| there == *content) {
                continue;
            }
            replace(&path, content).map_err(|error| in_file(&path, &error))?;
            changed += 1;
        }
        let is_left_over = |name: &&String| !self.files.contains_key(*name);
        let left_over: Vec<_> = self.earlier.iter().filter(is_left_over).collect();
        for name in &left_over {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(|error| in_file(&path, &error))?;
        }
        Ok(Written {
            files: self.files.len(),
            changed,
            removed: left_over.len(),
        })
    }
}

/// Nobody ever sees half a file.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    fs::write(&beside, content)?;
    fs::rename(&beside, path)
}

/// None where there is no directory.
fn names(directory: &Path) -> Result<Vec<String>, Problem> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(in_file(directory, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| in_file(directory, &error))?;
        // A package's file never has a name that is not UTF-8.
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn is_fetched(path: &Path) -> Result<bool, Problem> {
    let content = match path.is_file() {
        true => fs::read(path).map_err(|error| in_file(path, &error))?,
        false => return Ok(false),
    };
    let first = content.split(|byte| *byte == b'\n').next();
    let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
    let first = first.trim_end();
    Ok(first.starts_with(BEGIN) && first.ends_with(END))
}

fn exists(path: &Path) -> Result<bool, Problem> {
    path.try_exists().map_err(|error| in_file(path, &error))
}

fn not_ours(path: &Path) -> Problem {
    let path = path.display();
    bad_input(format!(
        "{path} is there, and no fetch wrote it; move it away, or give another --out"
    ))
}

fn in_file(path: &Path, error: &io::Error) -> Problem {
    bad_input(format!("{}: {error}", path.display()))
}

const BEGIN: &str = "// Contract of a Chronicle server, ";
const END: &str = "; written by chronicle contract fetch. Do not edit.";
