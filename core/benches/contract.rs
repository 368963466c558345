//! How long it takes to judge two contracts: published ones against what prost-types needs to
//! decode one of them, and two generated ones of 50 MB each.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark reads files that the environment names"
)]

mod generate;

use chronicle_connection::{Incompatibility, Schema, diff};
use divan::{Bencher, black_box};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use std::{env, fs, path::Path};

fn main() {
    if env::var_os("CHRONICLE_TEST_DATA").is_none() {
        println!("CHRONICLE_TEST_DATA is unset: generated contracts stand in for published ones");
    }
    divan::main();
}

#[divan::bench(sample_count = 300)]
fn published_read_both_and_diff(bencher: Bencher<'_, '_>) {
    let (old, new) = published();
    bencher.bench(|| judge(black_box(old.clone()), black_box(new.clone())));
}

#[divan::bench(sample_count = 300)]
fn published_prost_decodes_one(bencher: Bencher<'_, '_>) {
    let (_, new) = published();
    bencher.bench(|| FileDescriptorSet::decode(black_box(&*new)).unwrap());
}

#[divan::bench(sample_count = 300)]
fn published_prost_decodes_the_smaller_one(bencher: Bencher<'_, '_>) {
    let (old, _) = published();
    bencher.bench(|| FileDescriptorSet::decode(black_box(&*old)).unwrap());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn generated_50_mb_read_both_and_diff(bencher: Bencher<'_, '_>) {
    let old = bytes::Bytes::from(generate::old(50_000_000));
    let new = bytes::Bytes::from(generate::new(50_000_000));
    bencher.bench(|| judge(old.clone(), new.clone()));
}

fn judge(old: bytes::Bytes, new: bytes::Bytes) -> Vec<Incompatibility> {
    let old = Schema::from_descriptor_set(old).unwrap();
    let new = Schema::from_descriptor_set(new).unwrap();
    diff(&old, &new)
}

fn published() -> (bytes::Bytes, bytes::Bytes) {
    let Some(data) = env::var_os("CHRONICLE_TEST_DATA") else {
        return (generate::old(77_000).into(), generate::new(77_000).into());
    };
    let read = |version: &str| {
        let file = format!("contracts/chronicle-{version}.desc");
        bytes::Bytes::from(fs::read(Path::new(&data).join(file)).unwrap())
    };
    (read("16.16.0"), read("16.34.0"))
}
