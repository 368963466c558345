//! How much memory connected, idle machines with three hosts take beside what they share, the
//! configuration and the contract: "max alloc" of a thousand of them. 2 KiB each is the most that is
//! allowed.

#[allow(dead_code, reason = "shared by two benchmarks")]
mod bare;

use bare::{Bare, shared};
use chronicle_connection::{Connection, Contract};
use divan::{AllocProfiler, Bencher};
use rand_chacha::ChaCha12Rng;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    println!(
        "the machine itself, without what it points to: {} bytes",
        size_of::<Connection<ChaCha12Rng>>()
    );
    divan::main();
}

#[divan::bench(sample_count = 1, sample_size = 1)]
#[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
fn a_thousand_connected_machines(bencher: Bencher<'_, '_>) {
    let (config, contract, now) = (shared(), Contract::default(), Instant::now());
    bencher.bench_local(|| {
        let mut machines = Vec::with_capacity(1000);
        for seed in 0..1000 {
            let mut bare = Bare::new(config.clone(), contract.clone(), seed, now);
            bare.connect();
            bare.keep_alive();
            machines.push(bare.connection);
        }
        machines
    });
}
