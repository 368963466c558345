//! How much memory it takes to judge two generated contracts of 50 MB each: "max alloc" is the most
//! that was allocated at a time, beyond the two inputs. Apart from the timings, for counting costs
//! time.

#![allow(clippy::unwrap_used, reason = "a failure is a failed benchmark")]

#[allow(dead_code, reason = "shared with the timings")]
mod generate;

use bytes::Bytes;
use chronicle_connection::{Schema, diff};
use divan::{AllocProfiler, Bencher};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn generated_50_mb_read_both_and_diff(bencher: Bencher<'_, '_>) {
    let old = Bytes::from(generate::old(50_000_000));
    let new = Bytes::from(generate::new(50_000_000));
    println!("inputs: {} and {} bytes", old.len(), new.len());
    bencher.bench(|| {
        let old = Schema::from_descriptor_set(old.clone()).unwrap();
        let new = Schema::from_descriptor_set(new.clone()).unwrap();
        diff(&old, &new)
    });
}
