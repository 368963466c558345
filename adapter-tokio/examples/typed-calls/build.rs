//! Makes Rust of the contract that `chronicle contract fetch` wrote. Needs no protoc.

use std::{error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=contract");
    let mut files = Vec::new();
    for entry in fs::read_dir("contract")? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            files.push(path);
        }
    }
    files.sort();
    let contract = protox::compile(files, ["contract"])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .include_file("contract.rs")
        .compile_fds(contract)?;
    Ok(())
}
